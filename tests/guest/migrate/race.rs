//! Commands during a migration.

use rdmacm_core::{EventKind, QpState};
use rdmacm_tests::{PATIENCE, Site};
use rdmacm_tests_macros::case;

const MOVES: usize = 100;

#[case]
fn commands_succeed_while_the_id_moves(site: &Site) {
    let channels = [site.channel(), site.channel()];
    let id = site.resolved(&channels[0], site.v4(7471));
    std::thread::scope(|scope| {
        let moving = scope.spawn(|| {
            for channel in channels.iter().cycle().skip(1).take(MOVES) {
                id.migrate(channel).unwrap();
            }
        });
        let mut count = 0;
        while !moving.is_finished() || count < MOVES {
            id.set_tos(8).unwrap();
            id.init_qp_attr(QpState::INIT).unwrap();
            count += 1;
        }
    });
}

/// The event arrives during the migration and is delivered once.
#[case]
fn events_arrive_while_the_id_moves(site: &Site) {
    for _ in 0..20 {
        let (old, id) = site.id();
        let new = site.channel();
        id.resolve_addr(None, site.v4(7471), PATIENCE).unwrap();
        id.migrate(&new).unwrap();
        assert!(old.try_next_event().unwrap().is_none());
        let event = new.next_event(PATIENCE).unwrap();
        assert_eq!(event.kind(), EventKind::AddrResolved);
        assert!(new.try_next_event().unwrap().is_none());
    }
}
