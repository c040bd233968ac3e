//! How QEMU runs the guest's processor: KVM or emulation.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use rdmacm_init::Plan;

use crate::guest::qemu::{self, Boot};
use crate::guest::run;
use crate::kernel::{Cache, Kernel};
use crate::process;

const KVM: &str = "/dev/kvm";
/// The host on which a guest has booted with KVM.
const RECORD: &str = "kvm-works-on";
/// With KVM, a guest boots in one or two seconds.
const PROBE: Duration = Duration::from_secs(15);

/// KVM or emulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accelerator {
    /// The host's own processor.
    Kvm,
    /// QEMU's emulation, which works everywhere.
    Tcg,
}

impl Accelerator {
    /// Chooses KVM if a guest boots with it: the device node alone does not show that. A success is
    /// recorded; a failure may have another reason.
    pub(crate) fn choose(cache: &Cache, kernel: &Kernel, init: &Path) -> anyhow::Result<Self> {
        if fs::File::options()
            .read(true)
            .write(true)
            .open(KVM)
            .is_err()
        {
            return Ok(Self::Tcg);
        }
        let host = host()?;
        let path = cache.path(RECORD);
        if fs::read_to_string(&path).is_ok_and(|recorded| recorded == host) {
            return Ok(Self::Kvm);
        }
        eprintln!("probing {KVM} ...");
        let accelerator = Self::probe(kernel, init);
        if accelerator == Self::Kvm {
            fs::write(&path, host).with_context(|| format!("write {}", path.display()))?;
        }
        Ok(accelerator)
    }

    fn probe(kernel: &Kernel, init: &Path) -> Self {
        let plan = Plan {
            modules: Vec::new(),
            job: None,
        };
        let boot = Boot {
            kernel,
            init,
            accelerator: Self::Kvm,
            memory: 512,
            mac_addresses: &[],
            plan: &plan,
        };
        match run::boots(&boot, PROBE) {
            Ok(()) => Self::Kvm,
            Err(error) => {
                let reason = error.to_string();
                let reason = reason.lines().next().unwrap_or_default();
                eprintln!("{KVM} does not work for guests here ({reason}): emulating instead");
                Self::Tcg
            }
        }
    }

    /// Arguments for the guest's kernel.
    ///
    /// An emulated processor on a busy host pauses at any time. The kernel's check that timer
    /// interrupts arrive in time then panics (`no_timer_check` disables it), and the measured
    /// frequency of the TSC is wrong by up to half. Therefore `tsc=unstable`: the frequency of
    /// HPET is known. The clock watchdog does not help: on 7.3 it compares the processors' clocks
    /// with interrupts off, until a clock advances that only advances with interrupts during the
    /// boot, while the other processor waits in `stop_machine`; neither ends.
    ///
    /// QEMU reuses translated code only at the same virtual address. Without address space
    /// randomization (`norandmaps`), a program starts in a third of the time.
    pub(super) const fn arguments(self) -> &'static str {
        match self {
            Self::Kvm => "",
            Self::Tcg => "no_timer_check tsc=unstable norandmaps",
        }
    }

    /// Options for QEMU.
    pub(crate) const fn options(self) -> [&'static str; 4] {
        match self {
            Self::Kvm => ["-accel", "kvm", "-cpu", "host"],
            Self::Tcg => ["-accel", "tcg,thread=multi", "-cpu", "max"],
        }
    }
}

impl fmt::Display for Accelerator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Kvm => "KVM",
            Self::Tcg => "TCG, QEMU's emulation",
        })
    }
}

/// What the result of a probe depends on: QEMU and the host's kernel.
fn host() -> anyhow::Result<String> {
    let qemu = process::output(Command::new(qemu::PROGRAM).arg("--version"))?;
    let kernel = fs::read_to_string("/proc/sys/kernel/version").unwrap_or_default();
    Ok(format!(
        "{} {}",
        qemu.lines().next().unwrap_or_default(),
        kernel.trim()
    ))
}
