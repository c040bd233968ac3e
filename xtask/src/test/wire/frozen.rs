//! The far guest stands still for longer than any timeout and goes on.

use std::time::Instant;

use anyhow::ensure;
use rdmacm_abi::EventNumber;
use rdmacm_init::{Answer, Step};

use super::soft::Soft;
use super::stage::Scene;
use super::status::{ECONNRESET, ETIMEDOUT, TIMED_OUT};

super::cases!(
    short SIW, long RXE: a_request_to_a_frozen_peer_ends,
        a_request_that_a_frozen_peer_holds_is_unreachable,
        a_disconnection_of_a_frozen_peer_ends,
        a_frozen_peer_goes_unnoticed;
);

async fn a_request_to_a_frozen_peer_ends(scene: Scene<'_>) -> anyhow::Result<()> {
    let (near, far) = (scene.near(), scene.far());
    near.gives_tcp_up_early().await?;
    let listener = far.listener().await?;
    let active = near.on_its_way(listener.port).await?;
    scene.turn().await;
    match scene.soft {
        Soft::Rxe => {
            let asked = Instant::now();
            near.connects(active, "").await?;
            let patient = scene.soft.patience_of_a_request();
            let seen = near.sees_late(asked, patient, active, EventNumber::UNREACHABLE, TIMED_OUT);
            seen.await?;
            scene.turn().await;
            // What was on the wire is heard in the end, from one who gave up.
            let request = far.requested(listener).await?;
            far.does(Step::Destroy { id: request.id }).await?;
        }
        Soft::Siw => {
            near.is_refused(active, ETIMEDOUT).await?;
            scene.turn().await;
            far.sees_nothing(listener).await?;
        }
    }
    near.sees_nothing(active).await
}

async fn a_request_that_a_frozen_peer_holds_is_unreachable(scene: Scene<'_>) -> anyhow::Result<()> {
    let (near, far) = (scene.near(), scene.far());
    let listener = far.listener().await?;
    let active = near.on_its_way(listener.port).await?;
    let asked = Instant::now();
    near.connects(active, "").await?;
    let request = far.requested(listener).await?;
    scene.turn().await;
    let patient = scene.soft.patience_of_a_request();
    let seen = near.sees_late(asked, patient, active, EventNumber::UNREACHABLE, TIMED_OUT);
    seen.await?;
    scene.turn().await;
    match scene.soft {
        // It learns as late that nobody hears its response.
        Soft::Rxe => drop(far.accepts(&request, "").await?),
        Soft::Siw => {
            let accepted = far.tries_to_accept(&request).await?;
            ensure!(accepted == Answer::Refused(ECONNRESET), "{accepted:?}");
        }
    }
    Ok(())
}

async fn a_disconnection_of_a_frozen_peer_ends(scene: Scene<'_>) -> anyhow::Result<()> {
    let (near, far) = (scene.near(), scene.far());
    let (active, passive) = scene.connection().await?;
    scene.turn().await;
    let asked = Instant::now();
    near.does(Step::Disconnect { id: active.id }).await?;
    let status = scene.soft.disconnected_from_silence();
    let patient = scene.soft.patience_of_a_disconnection();
    let seen = near.sees_late(asked, patient, active, EventNumber::DISCONNECTED, status);
    seen.await?;
    scene.turn().await;
    far.sees(passive, EventNumber::DISCONNECTED, 0).await?;
    Ok(())
}

async fn a_frozen_peer_goes_unnoticed(scene: Scene<'_>) -> anyhow::Result<()> {
    let (near, far) = (scene.near(), scene.far());
    let (active, passive) = scene.connection().await?;
    scene.turn().await;
    scene.turn().await;
    near.sees_nothing(active).await?;
    far.sees_nothing(passive).await?;
    scene.parts(active, passive).await
}
