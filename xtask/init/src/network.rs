//! Sets up links, addresses and RDMA devices with the host's iproute2.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use rdmacm_init::Network;

use crate::root;
use crate::watch::Watch;

/// `/proc/net/if_inet6`: the scope of a link-local address, in hexadecimal.
const LINK_LOCAL: &str = "20";
/// `IFA_F_TENTATIVE`.
const TENTATIVE: u32 = 0x40;

/// Sets up the network of the plan. When it returns, every address is usable and every device
/// has its GIDs.
pub(crate) fn set_up(network: &Network) -> anyhow::Result<()> {
    root::replace("/etc/hosts", &network.hosts)?;
    root::replace("/etc/resolv.conf", "nameserver 127.0.0.1\n")?;
    root::replace("/etc/nsswitch.conf", "hosts: files\n")?;
    for scope in ["all", "default"] {
        let path = format!("/proc/sys/net/ipv6/conf/{scope}/accept_dad");
        fs::write(&path, "0").with_context(|| format!("write {path}"))?;
    }

    let addresses = Watch::ipv6_addresses()?;
    batch("ip", &network.links)?;
    addresses.until("a usable link-local address on every link", || {
        let table = fs::read_to_string("/proc/net/if_inet6").context("read the addresses")?;
        Ok(usable(&table, &network.interfaces).then_some(()))
    })?;

    // After the addresses, so that a device's GID table is complete when the device appears.
    batch("rdma", &network.rdma)?;
    for device in &network.devices {
        if !Path::new("/sys/class/infiniband").join(device).exists() {
            bail!("the RDMA device {device} does not exist");
        }
    }
    Ok(())
}

/// Returns whether no address is tentative and each interface has a link-local address.
fn usable(table: &str, interfaces: &[String]) -> bool {
    let rows = || {
        table
            .lines()
            .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
    };
    let settled = rows().all(|row| {
        row.get(4)
            .and_then(|flags| u32::from_str_radix(flags, 16).ok())
            .is_some_and(|flags| flags & TENTATIVE == 0)
    });
    settled
        && interfaces.iter().all(|interface| {
            rows().any(|row| {
                row.get(3) == Some(&LINK_LOCAL) && row.get(5) == Some(&interface.as_str())
            })
        })
}

/// Runs a program of iproute2 with a list of commands.
fn batch(program: &str, commands: &str) -> anyhow::Result<()> {
    let mut child = Command::new(program)
        .args(["-b", "-"])
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("start `{program}` of iproute2"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin
            .write_all(commands.as_bytes())
            .with_context(|| format!("write to `{program}`"))?;
    }
    let output = child
        .wait_with_output()
        .with_context(|| format!("wait for `{program}`"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{program} -b`: {}: {}", output.status, stderr.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "fe80000000000000b0c0ddfffe2f1d3e 05 40 20 80     veth0\n";

    #[test]
    fn the_network_is_not_usable_without_a_link_local_address() {
        let wanted = ["veth0".to_owned(), "veth1".to_owned()];
        assert!(usable(LINK, &wanted[..1]));
        assert!(!usable(LINK, &wanted));
        assert!(!usable(&LINK.replace(" 20 ", " 00 "), &wanted[..1]));
    }

    #[test]
    fn the_network_is_not_usable_with_a_tentative_address() {
        assert!(!usable(
            &LINK.replace(" 80 ", " c0 "),
            &["veth0".to_owned()]
        ));
    }
}
