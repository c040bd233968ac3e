//! The kernels that guests run.

pub(crate) mod apt;
mod cache;
mod image;
mod modules;
mod new;
mod role;
mod stock;
mod version;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

pub(crate) use self::cache::{Cache, DEBS, Record};
pub(crate) use self::role::{Choice, Role};
use crate::host_packages;

/// The image in a cached kernel's folder.
const IMAGE: &str = "bzImage";
/// The C headers in the new kernel's folder.
const HEADERS: &str = "headers/include";

/// A kernel that is ready to boot.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// `stock`, `new` or `custom`.
    pub(crate) name: &'static str,
    /// What `uname -r` says in it.
    pub(crate) release: String,
    /// The package it was made from; none for the user's own.
    version: Option<String>,
    /// The bzImage.
    pub(crate) image: PathBuf,
    /// Its `/lib/modules/RELEASE`, where it has one.
    modules: Option<PathBuf>,
}

impl Kernel {
    /// The kernel the user means; made now where it is not there yet.
    pub(crate) fn choose(choice: &Choice, modules: Option<&Path>) -> anyhow::Result<Self> {
        match choice {
            Choice::Role(role) => {
                ensure!(
                    modules.is_none(),
                    "`--modules` goes with a kernel image of your own"
                );
                Self::prepare(*role, false)
            }
            Choice::Image(image) => Self::custom(image, modules),
        }
    }

    /// The kernel of a role, from the cache or made now. With `update`, made
    /// again if the mirror has a newer one.
    pub(crate) fn prepare(role: Role, update: bool) -> anyhow::Result<Self> {
        let cache = Cache::open()?;
        let fits = fits(role)?;
        // Not under the lock: whoever has a kernel need not wait for others'.
        if let (false, Some(kernel)) = (update, Self::find(&cache, role, &fits)) {
            return Ok(kernel);
        }
        let _hold = cache.hold()?;
        let kept = cache.find(role.as_str(), &fits);
        let (folder, record) = match kept {
            Some(kept) if !update => kept,
            kept => match role {
                Role::Stock => stock::make_newest(&cache, kept.as_ref()),
                Role::New => new::make_newest(&cache, kept.as_ref()),
            }
            .with_context(|| format!("prepare the {role} kernel"))?,
        };
        Ok(Self::cached(role, &folder, record))
    }

    /// The kernel of a role, where the cache has it.
    pub(crate) fn kept(role: Role) -> anyhow::Result<Option<Self>> {
        Ok(Self::find(&Cache::open()?, role, &fits(role)?))
    }

    fn find(cache: &Cache, role: Role, fits: &str) -> Option<Self> {
        let (folder, record) = cache.find(role.as_str(), fits)?;
        Some(Self::cached(role, &folder, record))
    }

    fn cached(role: Role, folder: &Path, record: Record) -> Self {
        let modules = folder.join("lib/modules").join(&record.release);
        Self {
            name: role.as_str(),
            image: folder.join(IMAGE),
            modules: modules.exists().then_some(modules),
            version: Some(record.version),
            release: record.release,
        }
    }

    fn custom(image: &Path, modules: Option<&Path>) -> anyhow::Result<Self> {
        let release = image::release(image)?;
        let installed = Path::new("/lib/modules").join(&release);
        let modules = match modules {
            Some(folder) => Some(folder.to_owned()),
            None => installed.join("modules.dep").exists().then_some(installed),
        };
        let image = std::path::absolute(image).context("find the image")?;
        Ok(Self {
            name: "custom",
            release,
            version: None,
            image,
            modules,
        })
    }

    /// Its C headers, where they were kept.
    pub(crate) fn headers(&self) -> Option<PathBuf> {
        let headers = self.image.parent()?.join(HEADERS);
        headers.exists().then_some(headers)
    }

    /// Module files to load, in order.
    pub(crate) fn modules_to_load(&self) -> anyhow::Result<Vec<PathBuf>> {
        let Some(folder) = &self.modules else {
            return Ok(Vec::new());
        };
        let files = modules::to_load(folder)?;
        Ok(files.into_iter().map(|file| folder.join(file)).collect())
    }

    /// The folder whose `lib/modules` holds its modules, as `modprobe --dirname` has it,
    /// if the connection manager is one of them.
    pub(crate) fn modules_root(&self) -> anyhow::Result<Option<PathBuf>> {
        let Some(folder) = &self.modules else {
            return Ok(None);
        };
        let is_module = modules::has(folder, "rdma_ucm")?;
        let root = folder.ancestors().nth(3).filter(|root| {
            folder
                .strip_prefix(root)
                .is_ok_and(|rest| rest == Path::new("lib/modules").join(&self.release))
        });
        Ok(root.filter(|_| is_module).map(Path::to_owned))
    }

    /// Whether it is the user's own.
    pub(crate) fn is_custom(&self) -> bool {
        self.version.is_none()
    }
}

impl std::fmt::Display for Kernel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} kernel {}", self.name, self.release)?;
        match &self.version {
            Some(version) => write!(formatter, " (Debian package version {version})"),
            None => write!(formatter, " ({})", self.image.display()),
        }
    }
}

/// What a cached kernel must have been made for to be used again.
fn fits(role: Role) -> anyhow::Result<String> {
    match role {
        Role::Stock => host_packages::debian_codename(),
        Role::New => Ok(new::CONFIG.to_owned()),
    }
}

/// What a guest needs of a kernel that somebody else built.
pub(crate) const CHECKLIST: &str = "\
A kernel of your own needs, built in or as modules (give their folder with
`--modules DIR`, the one that holds modules.dep):
  boot     BLK_DEV_INITRD, SERIAL_8250_CONSOLE, ACPI, PCI, DEVTMPFS
  host     VIRTIO_PCI, VIRTIO_CONSOLE, NET_9P_VIRTIO, 9P_FS, OVERLAY_FS, TMPFS
  network  IPV6, VETH, DUMMY, VIRTIO_NET
  RDMA     INFINIBAND_USER_ACCESS, INFINIBAND_ADDR_TRANS, RDMA_RXE, RDMA_SIW
           (and CRYPTO_CRC32, CRYPTO_CRC32C for kernels before 6.14)
xtask/kernel.config is a complete fragment for `make tinyconfig`.";
