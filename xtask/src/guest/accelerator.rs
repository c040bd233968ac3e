//! How QEMU runs the guest's processor here.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use rdmacm_init::Plan;
use serde::{Deserialize, Serialize};

use crate::guest::qemu::{self, Boot};
use crate::guest::run;
use crate::kernel::{Cache, Kernel};
use crate::process;

const KVM: &str = "/dev/kvm";
const RECORD: &str = "accelerator.json";
/// A guest under KVM that works comes up in a second or two.
const PROBE: Duration = Duration::from_secs(15);

/// Hardware or emulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Accelerator {
    /// The host's own processor.
    Kvm,
    /// QEMU's emulation, which works everywhere.
    Tcg,
}

/// A probe's answer, and what it holds for.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    accelerator: Accelerator,
    host: String,
}

impl Accelerator {
    /// KVM where a guest really comes up with it, which the device node alone
    /// does not promise. The answer is kept in the cache.
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
        let kept = fs::read(&path)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok());
        if let Some(Record {
            accelerator,
            host: kept,
        }) = kept
        {
            if kept == host {
                return Ok(accelerator);
            }
        }
        eprintln!("probing {KVM} ...");
        let accelerator = Self::probe(kernel, init);
        // A user's own kernel may have failed for reasons of its own.
        if kernel.is_custom() {
            return Ok(accelerator);
        }
        let record = serde_json::to_vec(&Record { accelerator, host }).context("a record")?;
        fs::write(&path, record).with_context(|| format!("write {}", path.display()))?;
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
            cards: &[],
            plan: &plan,
        };
        match run::comes_up(&boot, PROBE) {
            Ok(()) => Self::Kvm,
            Err(error) => {
                let reason = error.to_string();
                let reason = reason.lines().next().unwrap_or_default();
                eprintln!("{KVM} does not work for guests here ({reason}): emulating instead");
                Self::Tcg
            }
        }
    }

    /// The kernel's arguments for it.
    ///
    /// Emulated on a busy host, a processor waits where the kernel counts on moments.
    /// The check that the timer's interrupts come in time ends in a panic then
    /// (`no_timer_check`), and the TSC's frequency comes out wrong by half. Watching
    /// it is no help (`tsc=unstable`: HPET's frequency is known): 7.3 compares the
    /// processors' clocks with interrupts off, for as long as a clock says that only
    /// interrupts move during the boot, while the other processor waits in
    /// `stop_machine`, and both spin for ever.
    ///
    /// What QEMU has translated it finds again at the same virtual address alone: a
    /// program starts in a third of the time where it always lies at the same place
    /// (`norandmaps`).
    pub(super) const fn arguments(self) -> &'static str {
        match self {
            Self::Kvm => "",
            Self::Tcg => "no_timer_check tsc=unstable norandmaps",
        }
    }

    /// QEMU's options for it.
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

/// What a probe's answer depends on: QEMU and the host's kernel.
fn host() -> anyhow::Result<String> {
    let qemu = process::output(Command::new(qemu::PROGRAM).arg("--version"))?;
    let kernel = fs::read_to_string("/proc/sys/kernel/version").unwrap_or_default();
    Ok(format!(
        "{} {}",
        qemu.lines().next().unwrap_or_default(),
        kernel.trim()
    ))
}
