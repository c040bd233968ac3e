//! Unprivileged processes. Each test runs in a process of its own, because it gives up
//! privileges or changes its view of the file system.

use rdmacm_tests::Site;

use crate::child;
use rdmacm_tests_macros::case;

#[case]
fn changed_credentials_are_explained(_site: &Site) {
    child::run("changed_credentials");
}

#[case]
fn a_privileged_port_needs_privilege(site: &Site) {
    child::run_at("privileged_port", site);
}

#[case]
fn a_privileged_process_binds_a_privileged_port(site: &Site) {
    let (_channel, id) = site.id();
    // One port for each device: neither wildcard is in use.
    id.bind(site.v4(700)).unwrap();
    assert_eq!(id.local_port(), Ok(700));
}

#[case(waiting)]
fn a_missing_device_node_is_explained(_site: &Site) {
    child::run("missing_node");
}

#[case(waiting)]
fn a_missing_module_is_explained(_site: &Site) {
    child::run("missing_module");
}

#[case]
fn a_device_node_created_late_is_opened(_site: &Site) {
    child::run("late_node");
}

#[case]
fn a_missing_permission_is_explained(_site: &Site) {
    child::run("missing_permission");
}
