//! The guest's file system: an overlay of the host's, read-only, and a layer in memory for
//! changes.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use anyhow::{Context as _, bail};
use nix::mount::{MsFlags, mount};
use rdmacm_init::{ROOT_TAG, Share};

const HOST: &str = "/host";
const LAYER: &str = "/layer";
const NEW_ROOT: &str = "/new";
const NINE_P: &str = "trans=virtio,version=9p2000.L,msize=512000,cache=loose";

/// Mounts `/proc`, `/sys` and `/dev` of the initramfs.
pub(crate) fn mount_kernel_files() -> anyhow::Result<()> {
    for (kind, path) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        mount_new(kind, kind, path, MsFlags::empty(), "")?;
    }
    Ok(())
}

/// Mounts the new root at [`NEW_ROOT`].
pub(crate) fn mount_host(shares: &[Share]) -> anyhow::Result<()> {
    mount_new(ROOT_TAG, "9p", HOST, MsFlags::MS_RDONLY, NINE_P)?;
    mount_new("layer", "tmpfs", LAYER, MsFlags::empty(), "")?;
    for part in ["upper", "work"] {
        fs::create_dir(Path::new(LAYER).join(part)).context("make the layer")?;
    }
    let options = format!("lowerdir={HOST},upperdir={LAYER}/upper,workdir={LAYER}/work");
    mount_new("root", "overlay", NEW_ROOT, MsFlags::empty(), &options)?;

    for (path, mode) in [("tmp", 0o1777), ("var/tmp", 0o1777), ("run", 0o755)] {
        let path = Path::new(NEW_ROOT).join(path);
        mount_new(
            "tmpfs",
            "tmpfs",
            &path,
            MsFlags::empty(),
            &format!("mode={mode:o}"),
        )?;
    }
    for Share { tag, path } in shares {
        let inside = path
            .strip_prefix("/")
            .context("a share's path is not absolute")?;
        mount_new(
            tag,
            "9p",
            Path::new(NEW_ROOT).join(inside),
            MsFlags::MS_RDONLY,
            NINE_P,
        )?;
    }
    for path in ["proc", "sys", "dev"] {
        let to = Path::new(NEW_ROOT).join(path);
        fs::create_dir_all(&to).context("make a mount point")?;
        let from = Path::new("/").join(path);
        mount(
            Some(&from),
            &to,
            None::<&str>,
            MsFlags::MS_MOVE,
            None::<&str>,
        )
        .with_context(|| format!("move {}", from.display()))?;
    }
    Ok(())
}

/// Changes the root to the new one, as `switch_root` does, and completes `/dev`.
pub(crate) fn enter() -> anyhow::Result<()> {
    std::env::set_current_dir(NEW_ROOT).context("enter the new root")?;
    mount(Some("."), "/", None::<&str>, MsFlags::MS_MOVE, None::<&str>).context("move the root")?;
    nix::unistd::chroot(".").context("change the root")?;
    std::env::set_current_dir("/").context("enter the root")?;

    mount_new(
        "devpts",
        "devpts",
        "/dev/pts",
        MsFlags::empty(),
        "ptmxmode=666",
    )?;
    mount_new("tmpfs", "tmpfs", "/dev/shm", MsFlags::empty(), "mode=1777")?;
    for (name, number) in [
        ("fd", ""),
        ("stdin", "/0"),
        ("stdout", "/1"),
        ("stderr", "/2"),
    ] {
        let link = Path::new("/dev").join(name);
        if !link.exists() {
            symlink(format!("/proc/self/fd{number}"), &link)
                .with_context(|| format!("link {}", link.display()))?;
        }
    }
    Ok(())
}

/// Makes the device nodes of the connection manager and of verbs accessible to every user.
pub(crate) fn open_rdma_nodes() -> anyhow::Result<()> {
    let directory = Path::new("/dev/infiniband");
    let manager = directory.join("rdma_cm");
    if !manager.exists() {
        bail!(
            "{} does not exist: the kernel lacks rdma_ucm",
            manager.display()
        );
    }
    for node in fs::read_dir(directory).context("list the RDMA nodes")? {
        let path = node.context("list the RDMA nodes")?.path();
        fs::set_permissions(&path, Permissions::from_mode(0o666))
            .with_context(|| format!("set the permissions of {}", path.display()))?;
    }
    Ok(())
}

/// Replaces a file. If the host has a symbolic link, replaces the link.
pub(crate) fn replace(path: &str, contents: &str) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("replace {path}"))
        }
        _ => fs::write(path, contents).with_context(|| format!("write {path}")),
    }
}

fn mount_new(
    source: &str,
    kind: &str,
    path: impl AsRef<Path>,
    flags: MsFlags,
    options: &str,
) -> anyhow::Result<()> {
    let path = path.as_ref();
    fs::create_dir_all(path).with_context(|| format!("make {}", path.display()))?;
    mount(Some(source), path, Some(kind), flags, Some(options))
        .with_context(|| format!("mount {kind} {source} on {}", path.display()))
}
