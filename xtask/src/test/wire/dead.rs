//! The far guest dies and nobody takes its place.

use std::time::Instant;

use rdmacm_abi::EventNumber;
use rdmacm_init::Step;

use super::soft::Soft;
use super::stage::Scene;
use super::status::{ETIMEDOUT, TIMED_OUT};

super::cases!(
    short BOTH, long NEITHER: a_dead_peer_has_no_address;
    short SIW, long RXE: a_request_to_a_dead_peer_ends,
        a_request_that_a_dead_peer_held_is_unreachable,
        a_disconnection_of_a_dead_peer_ends,
        a_response_to_a_dead_peer_is_heard_by_nobody,
        a_dead_peer_goes_unnoticed;
);

/// Where no neighbour is known.
async fn a_dead_peer_has_no_address(scene: Scene<'_>) -> anyhow::Result<()> {
    let near = scene.near();
    let id = near.id().await?;
    scene.turn().await;
    // An earlier act may have met it.
    let interface = scene.soft.interface();
    near.runs(format!("ip -6 neigh flush dev {interface}"))
        .await?;
    let step = Step::ResolveAddr {
        id: id.id,
        address: scene.far().address_v6(7471),
        timeout_ms: 2000,
    };
    near.does(step).await?;
    near.sees(id, EventNumber::ADDR_ERROR, TIMED_OUT).await?;
    Ok(())
}

/// Where the neighbour is written down for ever, so that its silence shows
/// only later.
async fn a_request_to_a_dead_peer_ends(scene: Scene<'_>) -> anyhow::Result<()> {
    let near = scene.near();
    near.knows_the_other_for_ever().await?;
    near.gives_tcp_up_early().await?;
    scene.turn().await;
    let active = near.on_its_way(7471).await?;
    match scene.soft {
        Soft::Rxe => {
            let asked = Instant::now();
            near.connects(active, "").await?;
            let patient = scene.soft.patience_of_a_request();
            let seen = near.sees_late(asked, patient, active, EventNumber::UNREACHABLE, TIMED_OUT);
            seen.await
        }
        Soft::Siw => near.is_refused(active, ETIMEDOUT).await,
    }
}

async fn a_request_that_a_dead_peer_held_is_unreachable(scene: Scene<'_>) -> anyhow::Result<()> {
    let (near, far) = (scene.near(), scene.far());
    let listener = far.listener().await?;
    let active = near.on_its_way(listener.port).await?;
    let asked = Instant::now();
    near.connects(active, "").await?;
    far.requested(listener).await?;
    scene.turn().await;
    let patient = scene.soft.patience_of_a_request();
    let seen = near.sees_late(asked, patient, active, EventNumber::UNREACHABLE, TIMED_OUT);
    seen.await
}

/// RoCE waits to hear that the response came, iWARP takes it for granted.
async fn a_response_to_a_dead_peer_is_heard_by_nobody(scene: Scene<'_>) -> anyhow::Result<()> {
    let (near, far) = (scene.near(), scene.far());
    let listener = near.listener().await?;
    let active = far.on_its_way(listener.port).await?;
    far.connects(active, "").await?;
    let request = near.requested(listener).await?;
    scene.turn().await;
    let asked = Instant::now();
    let passive = near.accepts(&request, "").await?;
    match scene.soft {
        Soft::Rxe => {
            let patient = scene.soft.patience_of_a_request();
            let seen = near.sees_late(asked, patient, passive, EventNumber::UNREACHABLE, TIMED_OUT);
            seen.await
        }
        Soft::Siw => {
            near.sees(passive, EventNumber::ESTABLISHED, 0).await?;
            Ok(())
        }
    }
}

async fn a_disconnection_of_a_dead_peer_ends(scene: Scene<'_>) -> anyhow::Result<()> {
    let near = scene.near();
    let (active, _) = scene.connection().await?;
    scene.turn().await;
    let asked = Instant::now();
    near.does(Step::Disconnect { id: active.id }).await?;
    let status = scene.soft.disconnected_from_silence();
    let patient = scene.soft.patience_of_a_disconnection();
    let seen = near.sees_late(asked, patient, active, EventNumber::DISCONNECTED, status);
    seen.await
}

/// For as long as the connection manager is patient with a silent peer.
async fn a_dead_peer_goes_unnoticed(scene: Scene<'_>) -> anyhow::Result<()> {
    let near = scene.near();
    let (active, _) = scene.connection().await?;
    scene.turn().await;
    scene.turn().await;
    near.sees_nothing(active).await
}
