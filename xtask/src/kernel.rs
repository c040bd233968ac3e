//! The kernels that guests run.

pub(crate) mod apt;
mod args;
mod cache;
mod image;
mod mended;
mod modules;
mod new;
mod newest;
mod role;
mod stock;
mod version;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

pub(crate) use self::args::KernelArgs;
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
    /// The output of `uname -r`.
    pub(crate) release: String,
    /// The version of its Debian package; `None` for the user's own kernel.
    version: Option<String>,
    /// The bzImage.
    pub(crate) image: PathBuf,
    /// Its `/lib/modules/RELEASE`, if it has one.
    modules: Option<PathBuf>,
}

impl Kernel {
    /// Returns the kernel of a role from the cache, or builds it. With `update`, builds it again
    /// if the mirror has a newer version.
    pub(crate) fn prepare(role: Role, update: bool) -> anyhow::Result<Self> {
        let cache = Cache::open()?;
        let fits = fits(role)?;
        // Not under the lock: a cached kernel is usable while another process builds one.
        if let (false, Some(kernel)) = (update, Self::find(&cache, role, &fits)) {
            return Ok(kernel);
        }
        let _lock = cache.lock()?;
        let cached = cache.find(role.as_str(), &fits, IMAGE);
        let (folder, record) = match cached {
            Some(cached) if !update => cached,
            cached => match role {
                Role::Stock => stock::make_newest(&cache, cached.as_ref()),
                Role::New => new::make_newest(&cache, cached.as_ref()),
            }
            .with_context(|| format!("prepare the {role} kernel"))?,
        };
        Ok(Self::from_record(role, &folder, record))
    }

    /// The kernel of a role, if it is in the cache.
    pub(crate) fn from_cache(role: Role) -> anyhow::Result<Option<Self>> {
        Ok(Self::find(&Cache::open()?, role, &fits(role)?))
    }

    fn find(cache: &Cache, role: Role, fits: &str) -> Option<Self> {
        let (folder, record) = cache.find(role.as_str(), fits, IMAGE)?;
        Some(Self::from_record(role, &folder, record))
    }

    fn from_record(role: Role, folder: &Path, record: Record) -> Self {
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

    /// Its C headers, if the cache has them.
    pub(crate) fn headers(&self) -> Option<PathBuf> {
        let headers = self.image.parent()?.join(HEADERS);
        headers.exists().then_some(headers)
    }

    /// The module files to load, in order.
    pub(crate) fn modules_to_load(&self) -> anyhow::Result<Vec<PathBuf>> {
        let Some(folder) = &self.modules else {
            return Ok(Vec::new());
        };
        let files = modules::to_load(folder)?;
        Ok(files.into_iter().map(|file| folder.join(file)).collect())
    }

    /// The folder whose `lib/modules` contains its modules, for `modprobe --dirname`, if the
    /// connection manager is a module.
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

    /// Checks that a guest has booted this kernel: another process may have replaced the cached one
    /// since it was chosen.
    pub(crate) fn check_booted(&self, release: &str) -> anyhow::Result<()> {
        ensure!(
            release == self.release,
            "the guest has booted Linux {release} instead of {}: {} was replaced meanwhile",
            self.release,
            self.image.display()
        );
        Ok(())
    }

    /// Returns whether it is the user's own kernel.
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

/// What must be equal for a cached kernel to be used: the host's Debian release, or the
/// configuration.
fn fits(role: Role) -> anyhow::Result<String> {
    match role {
        Role::Stock => host_packages::debian_codename(),
        Role::New => Ok(new::fits()),
    }
}

/// What a guest needs of the user's own kernel.
pub(crate) const CHECKLIST: &str = "\
A custom kernel needs, built in or as modules (`--modules DIR` is the folder
that contains modules.dep):
  boot     BLK_DEV_INITRD, SERIAL_8250_CONSOLE, ACPI, PCI, DEVTMPFS
  host     VIRTIO_PCI, VIRTIO_CONSOLE, NET_9P_VIRTIO, 9P_FS, OVERLAY_FS, TMPFS
  network  IPV6, VETH, DUMMY, VIRTIO_NET
  RDMA     INFINIBAND_USER_ACCESS, INFINIBAND_ADDR_TRANS, RDMA_RXE, RDMA_SIW
           (and CRYPTO_CRC32, CRYPTO_CRC32C for kernels before 6.14)
xtask/kernel.config is a complete fragment for `make tinyconfig`.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_with_another_release_is_refused() {
        let record = Record {
            version: "6.1.9-1".to_owned(),
            release: "6.1.0-9-amd64".to_owned(),
            fits: String::new(),
        };
        let kernel = Kernel::from_record(Role::Stock, Path::new("/cache/stock"), record);
        kernel.check_booted("6.1.0-9-amd64").unwrap();
        let error = kernel.check_booted("6.1.0-10-amd64").unwrap_err();
        assert!(
            error.to_string().contains("/cache/stock/bzImage"),
            "{error}"
        );
    }
}
