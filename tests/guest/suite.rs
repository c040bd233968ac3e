//! The suite: the registered cases, each for every device that supports it.

use libtest_mimic::Failed;
use rdmacm_core::AddressAbi;
use rdmacm_tests::Site;

use crate::rdma_core::RdmaCore;
use crate::schedule::{Planned, When};
use crate::{acm, scenarios};

mod need;

pub(crate) use need::Need;

/// A test function, as `#[case]` registers it.
pub(crate) struct Case {
    module: &'static str,
    function: &'static str,
    line: u32,
    run: Run,
    when: When,
    each_abi: bool,
    rdma_core: RdmaCore,
    needs: &'static [Need],
    covers: &'static [&'static str],
}

inventory::collect!(Case);

/// How often a function runs.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// Once, without a site.
    Once(fn()),
    /// Once for each device.
    EachDevice(fn(&Site)),
}

/// Registers a function with the options of its `#[case]`, in any order:
///
/// - `alone`, `quiet`, `waiting`: how it shares the guest, see [`When`];
/// - `each_abi`: it runs with each ABI of the address commands;
/// - `newest_rdma_core`: it compares with the newest rdma-core, on the new kernel;
/// - `needs(NEED, …)`: it is skipped where one of these [`Need`]s is missing;
/// - `covers(NAME, …)`: the ucma commands and events that `tests/coverage.md` lists it for.
macro_rules! register {
    ($function:ident $scope:ident [$($options:tt)*]) => {
        inventory::submit! {
            crate::suite::configure!(
                crate::suite::Case::new(
                    module_path!(),
                    stringify!($function),
                    line!(),
                    crate::suite::Run::$scope($function),
                ),
                $($options)*
            )
        }
    };
}
pub(crate) use register;

/// A case with its options.
macro_rules! configure {
    ($case:expr $(,)?) => { $case };
    ($case:expr, needs($($need:ident),+) $(, $($rest:tt)*)?) => {
        crate::suite::configure!(
            $case.needs(&[$(crate::suite::Need::$need),+]), $($($rest)*)?
        )
    };
    ($case:expr, covers($($name:ident),+) $(, $($rest:tt)*)?) => {
        crate::suite::configure!($case.covers(&[$(stringify!($name)),+]), $($($rest)*)?)
    };
    ($case:expr, $option:ident $(, $($rest:tt)*)?) => {
        crate::suite::configure!($case.$option(), $($($rest)*)?)
    };
}
pub(crate) use configure;

impl Case {
    pub(crate) const fn new(
        module: &'static str,
        function: &'static str,
        line: u32,
        run: Run,
    ) -> Self {
        Self {
            module,
            function,
            line,
            run,
            when: When::Shared,
            each_abi: false,
            rdma_core: RdmaCore::System,
            needs: &[],
            covers: &[],
        }
    }

    pub(crate) const fn alone(mut self) -> Self {
        self.when = When::Alone;
        self
    }

    pub(crate) const fn quiet(mut self) -> Self {
        self.when = When::Quiet;
        self
    }

    pub(crate) const fn waiting(mut self) -> Self {
        self.when = When::Waiting;
        self
    }

    pub(crate) const fn each_abi(mut self) -> Self {
        self.each_abi = true;
        self
    }

    pub(crate) const fn newest_rdma_core(mut self) -> Self {
        self.rdma_core = RdmaCore::Newest;
        self
    }

    pub(crate) const fn needs(mut self, needs: &'static [Need]) -> Self {
        self.needs = needs;
        self
    }

    pub(crate) const fn covers(mut self, names: &'static [&'static str]) -> Self {
        self.covers = names;
        self
    }

    /// The names of the commands and events that the test covers.
    pub(crate) fn covered(&self) -> &'static [&'static str] {
        self.covers
    }

    /// The test's path in this suite, `bind::a_wildcard_has_no_device`.
    pub(crate) fn path(&self) -> String {
        let (_crate, module) = self.module.split_once("::").unwrap_or_default();
        format!("{module}::{}", self.function)
    }

    pub(crate) fn is_of_each_abi(&self) -> bool {
        self.each_abi
    }

    /// The reason why the test cannot run there.
    pub(crate) fn missing(&self, kernel: &str, site: &Site) -> Option<&'static str> {
        let mut missing = self
            .needs
            .iter()
            .filter_map(|need| need.missing(kernel, site));
        missing.next()
    }

    fn is_of_each_device(&self) -> bool {
        matches!(self.run, Run::EachDevice(_))
    }

    fn plan(&'static self, kernel: &str, place: &str, site: Site) -> Planned {
        let name = format!("{kernel}/{place}/{}", self.path());
        if let Some(reason) = self.missing(kernel, &site) {
            return Planned::skipped(name, reason);
        }
        Planned::new(name, self.when, move || {
            self.run.call(&site);
            Ok::<(), Failed>(())
        })
    }
}

impl Run {
    fn call(self, site: &Site) {
        match self {
            Self::Once(function) => function(),
            Self::EachDevice(function) => function(site),
        }
    }
}

/// All registered cases, in the order of their modules and lines.
pub(crate) fn cases() -> Vec<&'static Case> {
    let mut cases: Vec<_> = inventory::iter::<Case>.into_iter().collect();
    cases.sort_by_key(|case| (case.module, case.line));
    cases
}

/// The tests of a kernel, device by device.
pub(crate) fn tests(kernel: &str) -> Vec<Planned> {
    let mut tests = Vec::new();
    for site in [Site::rxe, Site::siw] {
        tests.extend(of_device(kernel, site));
    }
    let site = Site::rxe(AddressAbi::AnyFamily);
    for rdma_core in RdmaCore::compared() {
        let place = rdma_core.place("both");
        let cases = cases().into_iter();
        let cases = cases.filter(|case| !case.is_of_each_device() && case.rdma_core == *rdma_core);
        tests.extend(cases.map(|case| case.plan(kernel, &place, site)));
    }
    tests
}

fn of_device(kernel: &str, site: fn(AddressAbi) -> Site) -> Vec<Planned> {
    let mut tests = Vec::new();
    let (cases, of_each_abi): (Vec<_>, Vec<_>) = cases()
        .into_iter()
        .filter(|case| case.is_of_each_device())
        .partition(|case| !case.each_abi);
    for abi in [AddressAbi::AnyFamily, AddressAbi::IpOnly] {
        let site = site(abi);
        let place = format!("{}/{}", site.driver(), abi_name(abi));
        let cases = of_each_abi.iter();
        tests.extend(cases.map(|case| case.plan(kernel, &place, site)));
    }
    let site = site(AddressAbi::AnyFamily);
    let cases = cases.iter();
    tests.extend(cases.map(|case| case.plan(kernel, site.driver(), site)));
    for rdma_core in RdmaCore::compared() {
        tests.extend(scenarios::trials(kernel, site, *rdma_core));
    }
    tests.extend(acm::trials(kernel, site));
    tests
}

/// The name of an ABI in a test's name.
pub(crate) fn abi_name(abi: AddressAbi) -> &'static str {
    match abi {
        AddressAbi::AnyFamily => "any-family",
        AddressAbi::IpOnly => "ip-only",
    }
}
