//! The far guest dies and another one comes up at its addresses.

use anyhow::ensure;
use rdmacm_abi::EventNumber;
use rdmacm_init::Step;

use super::side::connect;
use super::stage::Scene;
use super::status::{INVALID_SERVICE, STALE, TIMED_OUT};

super::cases!(
    short BOTH, long NEITHER: a_connection_that_the_peer_forgot_ends_at_once,
        a_peer_that_comes_back_is_connected_again;
    short RXE, long NEITHER: a_request_reaches_the_next_listener,
        a_request_finds_no_listener_any_more,
        a_queue_pair_number_used_again_is_stale_once,
        a_queue_pair_number_used_again_in_a_response_is_stale;
    short SIW, long NEITHER: a_request_dies_with_the_peer;
);

async fn a_request_reaches_the_next_listener(scene: Scene<'_>) -> anyhow::Result<()> {
    let (near, far) = (scene.near(), scene.far());
    let listener = far.listener().await?;
    let active = near.on_its_way(listener.port).await?;
    near.connects(active, "hello").await?;
    far.requested(listener).await?;
    scene.turn().await;
    scene.turn().await;
    let listener = far.listener_at(listener.port).await?;
    scene.turn().await;
    let request = far.requested(listener).await?;
    ensure!(request.data == "hello", "{request:?}");
    let passive = far.accepts(&request, "").await?;
    near.is_connected(active).await?;
    far.sees(passive, EventNumber::ESTABLISHED, 0).await?;
    Ok(())
}

async fn a_request_finds_no_listener_any_more(scene: Scene<'_>) -> anyhow::Result<()> {
    let (near, far) = (scene.near(), scene.far());
    let listener = far.listener().await?;
    let active = near.on_its_way(listener.port).await?;
    near.connects(active, "").await?;
    far.requested(listener).await?;
    scene.turn().await;
    scene.turn().await;
    scene.turn().await;
    let seen = near.sees(active, EventNumber::REJECTED, INVALID_SERVICE);
    seen.await?;
    Ok(())
}

async fn a_request_dies_with_the_peer(scene: Scene<'_>) -> anyhow::Result<()> {
    let (near, far) = (scene.near(), scene.far());
    let listener = far.listener().await?;
    let active = near.on_its_way(listener.port).await?;
    near.connects(active, "").await?;
    far.requested(listener).await?;
    scene.turn().await;
    scene.turn().await;
    near.sees(active, EventNumber::UNREACHABLE, TIMED_OUT)
        .await?;
    let listener = far.listener_at(listener.port).await?;
    scene.turn().await;
    far.sees_nothing(listener).await
}

async fn a_connection_that_the_peer_forgot_ends_at_once(scene: Scene<'_>) -> anyhow::Result<()> {
    let near = scene.near();
    let (active, _) = scene.connection().await?;
    scene.turn().await;
    scene.turn().await;
    scene.turn().await;
    near.sees_nothing(active).await?;
    near.does(Step::Disconnect { id: active.id }).await?;
    near.sees(active, EventNumber::DISCONNECTED, 0).await?;
    Ok(())
}

async fn a_peer_that_comes_back_is_connected_again(scene: Scene<'_>) -> anyhow::Result<()> {
    let near = scene.near();
    let (old, _) = scene.connection().await?;
    scene.turn().await;
    scene.turn().await;
    scene.turn().await;
    scene.connection().await?;
    near.sees_nothing(old).await
}

async fn a_queue_pair_number_used_again_is_stale_once(scene: Scene<'_>) -> anyhow::Result<()> {
    let (near, far) = (scene.near(), scene.far());
    let listener = near.listener().await?;
    let qp_number = far.queue_pair().await?;
    let active = far.on_its_way(listener.port).await?;
    far.does(connect(active, qp_number, "")).await?;
    let request = near.requested(listener).await?;
    let old = near.accepts(&request, "").await?;
    far.is_connected(active).await?;
    near.sees(old, EventNumber::ESTABLISHED, 0).await?;
    scene.turn().await;
    scene.turn().await;
    scene.turn().await;
    let refused = far.on_its_way(listener.port).await?;
    far.does(connect(refused, qp_number, "")).await?;
    far.sees(refused, EventNumber::REJECTED, STALE).await?;
    near.sees(old, EventNumber::DISCONNECTED, 0).await?;
    let again = far.on_its_way(listener.port).await?;
    far.does(connect(again, qp_number, "")).await?;
    let request = near.requested(listener).await?;
    let new = near.accepts(&request, "").await?;
    far.is_connected(again).await?;
    near.sees(new, EventNumber::ESTABLISHED, 0).await?;
    Ok(())
}

async fn a_queue_pair_number_used_again_in_a_response_is_stale(
    scene: Scene<'_>,
) -> anyhow::Result<()> {
    let (near, far) = (scene.near(), scene.far());
    let listener = far.listener().await?;
    let qp_number = far.queue_pair().await?;
    let old = near.on_its_way(listener.port).await?;
    near.connects(old, "").await?;
    let request = far.requested(listener).await?;
    let passive = far.accepts_with(&request, qp_number, "").await?;
    near.is_connected(old).await?;
    far.sees(passive, EventNumber::ESTABLISHED, 0).await?;
    scene.turn().await;
    scene.turn().await;
    let listener = far.listener_at(listener.port).await?;
    scene.turn().await;
    let active = near.on_its_way(listener.port).await?;
    near.connects(active, "").await?;
    let request = far.requested(listener).await?;
    let passive = far.accepts_with(&request, qp_number, "").await?;
    far.sees(passive, EventNumber::REJECTED, STALE).await?;
    near.sees(old, EventNumber::DISCONNECTED, 0).await?;
    // The kernel has stopped asking and never says so.
    near.sees_nothing(active).await?;
    near.does(Step::Destroy { id: active.id }).await
}
