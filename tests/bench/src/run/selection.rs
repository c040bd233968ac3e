//! Which measures run, and where.

use rdmacm_init::bench::StableCounts;

use crate::plan::{Devices, MEASURES, Measure};
use crate::run::Device;
use crate::run::library::Library;
use crate::run::peers::Peers;
use crate::task::Task;
use crate::work::Target;

/// A measure on a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selected<'devices> {
    pub(crate) measure: &'static Measure,
    pub(crate) device: &'devices Device,
}

impl Selected<'_> {
    /// `DEVICE/WORKLOAD`
    fn name(&self) -> String {
        format!("{}/{}", self.device.name, self.measure.workload)
    }

    /// What a library does for it, with its peer; `None` if the library does not do it.
    pub(crate) fn task(
        &self,
        library: &Library,
        peers: &mut Peers,
    ) -> anyhow::Result<Option<Task>> {
        let Some(workload) = library.workload(self.measure) else {
            return Ok(None);
        };
        let target = Target {
            address: self.device.address,
            port: peers.port(library, self.device, self.measure)?,
        };
        Ok(Some(Task {
            workload: workload.to_owned(),
            target,
            count: self.measure.count,
        }))
    }
}

/// The measures that run.
#[derive(Debug)]
pub(crate) struct Selection<'devices>(Vec<Selected<'devices>>);

impl<'devices> Selection<'devices> {
    /// Those whose names contain one of the filters, or all if there is no filter. A filter
    /// with a slash is a whole name.
    pub(crate) fn new(devices: &'devices [Device], filters: &[String]) -> Self {
        let fits = |selected: &Selected<'_>| {
            let name = selected.name();
            let contains = |filter: &String| {
                if filter.contains('/') {
                    name == *filter
                } else {
                    name.contains(filter)
                }
            };
            filters.is_empty() || filters.iter().any(contains)
        };
        let on_devices = MEASURES.iter().flat_map(|measure| {
            let wanted = match measure.devices {
                Devices::One => 1,
                Devices::All => devices.len(),
            };
            let devices = devices.iter().take(wanted);
            devices.map(move |device| Selected { measure, device })
        });
        Self(on_devices.filter(fits).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Selected<'devices>> {
        self.0.iter()
    }

    /// Those whose counts are the same in every run.
    pub(crate) fn repeatable(&self) -> Self {
        let repeatable = |selected: &&Selected<'_>| {
            use StableCounts::{Allocations, Calls, Exact};
            matches!(selected.measure.counts, Exact | Calls | Allocations)
        };
        Self(self.iter().filter(repeatable).copied().collect())
    }

    /// Those that are counted, in parts of one device and group each: if one fails, those of the
    /// other parts have results.
    pub(crate) fn parts(&self) -> Vec<Self> {
        let mut parts: Vec<Self> = Vec::new();
        let counted = |selected: &&Selected<'_>| selected.measure.counts != StableCounts::Nothing;
        for selected in self.iter().filter(counted) {
            let subject = (selected.measure.group, &selected.device.name);
            let same = |part: &&mut Self| {
                let mut first = part.0.iter().take(1);
                first.any(|first| (first.measure.group, &first.device.name) == subject)
            };
            match parts.iter_mut().find(same) {
                Some(part) => part.0.push(*selected),
                None => parts.push(Self(vec![*selected])),
            }
        }
        parts
    }

    /// What a library does, all of it.
    pub(crate) fn tasks(
        &self,
        library: &Library,
        peers: &mut Peers,
    ) -> anyhow::Result<Vec<(Selected<'devices>, Task)>> {
        let mut tasks = Vec::new();
        for selected in &self.0 {
            if let Some(task) = selected.task(library, peers)? {
                tasks.push((*selected, task));
            }
        }
        Ok(tasks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(filters: &[&str]) -> Vec<String> {
        let devices = ["rxe", "siw"].map(|name| Device {
            name: name.to_owned(),
            address: [127, 0, 0, 1].into(),
        });
        let filters: Vec<_> = filters.iter().map(|filter| (*filter).to_owned()).collect();
        let selection = Selection::new(&devices, &filters);
        selection.iter().map(Selected::name).collect()
    }

    #[test]
    fn a_filter_selects_names_that_contain_it() {
        assert_eq!(selected(&["post-send"]), ["rxe/post-send", "siw/post-send"]);
        assert_eq!(
            selected(&["siw/post-send", "event"]),
            ["rxe/event", "siw/post-send"]
        );
        assert_eq!(selected(&["rxe/id"]), ["rxe/id"]);
        assert!(selected(&["nothing"]).is_empty());
        assert!(selected(&[]).len() > 10);
    }
}
