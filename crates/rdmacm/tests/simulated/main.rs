//! Connections between simulated hosts: no device, no privilege, and a clock that moves as
//! fast as the tests do.
#![cfg(test)]

mod abandoned_polls;
mod address_change;
mod addresses;
mod auto_traits;
mod cancellation;
mod closing;
mod commands;
mod connecting;
mod deadlines;
mod forked;
mod hosts;
mod incoming;
mod lookups;
mod messages;
mod polled_listeners;
mod queue_pair;
mod rejecting;
mod slow_commands;
mod streams;
mod tasks;
