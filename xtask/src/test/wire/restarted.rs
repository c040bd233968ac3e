//! The far guest is killed, and another one boots at its addresses.

use anyhow::ensure;
use rdmacm_abi::EventNumber;
use rdmacm_init::Step;

use super::guest_client::connect_step;
use super::status::{INVALID_SERVICE, STALE, TIMED_OUT};
use super::test_context::TestContext;

super::cases!(
    short BOTH, long NEITHER: disconnecting_from_a_restarted_peer_completes_at_once,
        a_restarted_peer_accepts_a_new_connection;
    short RXE, long NEITHER: a_retried_request_reaches_the_listener_of_a_restarted_peer,
        a_restarted_peer_without_a_listener_rejects_a_retried_request,
        a_reused_queue_pair_number_is_rejected_as_stale_once,
        a_reused_queue_pair_number_in_a_response_is_rejected_as_stale;
    short SIW, long NEITHER: a_request_is_lost_if_the_peer_restarts;
);

async fn a_retried_request_reaches_the_listener_of_a_restarted_peer(
    context: TestContext<'_>,
) -> anyhow::Result<()> {
    let (near, far) = (context.near(), context.far());
    let listener = far.listen().await?;
    let active = near.resolve_port(listener.port).await?;
    near.connect(active, "hello").await?;
    far.expect_request(listener).await?;
    context.wait_for_action().await;
    context.wait_for_action().await;
    let listener = far.listen_on_port(listener.port).await?;
    context.wait_for_action().await;
    let request = far.expect_request(listener).await?;
    ensure!(request.data == "hello", "{request:?}");
    let passive = far.accept(&request, "").await?;
    near.finish_connect(active).await?;
    far.expect_event(passive, EventNumber::ESTABLISHED, 0)
        .await?;
    Ok(())
}

async fn a_restarted_peer_without_a_listener_rejects_a_retried_request(
    context: TestContext<'_>,
) -> anyhow::Result<()> {
    let (near, far) = (context.near(), context.far());
    let listener = far.listen().await?;
    let active = near.resolve_port(listener.port).await?;
    near.connect(active, "").await?;
    far.expect_request(listener).await?;
    context.wait_for_action().await;
    context.wait_for_action().await;
    context.wait_for_action().await;
    let seen = near.expect_event(active, EventNumber::REJECTED, INVALID_SERVICE);
    seen.await?;
    Ok(())
}

async fn a_request_is_lost_if_the_peer_restarts(context: TestContext<'_>) -> anyhow::Result<()> {
    let (near, far) = (context.near(), context.far());
    let listener = far.listen().await?;
    let active = near.resolve_port(listener.port).await?;
    near.connect(active, "").await?;
    far.expect_request(listener).await?;
    context.wait_for_action().await;
    context.wait_for_action().await;
    near.expect_event(active, EventNumber::UNREACHABLE, TIMED_OUT)
        .await?;
    let listener = far.listen_on_port(listener.port).await?;
    context.wait_for_action().await;
    far.expect_no_event(listener).await
}

async fn disconnecting_from_a_restarted_peer_completes_at_once(
    context: TestContext<'_>,
) -> anyhow::Result<()> {
    let near = context.near();
    let (active, _) = context.connect().await?;
    context.wait_for_action().await;
    context.wait_for_action().await;
    context.wait_for_action().await;
    near.expect_no_event(active).await?;
    near.run_step(Step::Disconnect { id: active.id }).await?;
    near.expect_event(active, EventNumber::DISCONNECTED, 0)
        .await?;
    Ok(())
}

async fn a_restarted_peer_accepts_a_new_connection(context: TestContext<'_>) -> anyhow::Result<()> {
    let near = context.near();
    let (old, _) = context.connect().await?;
    context.wait_for_action().await;
    context.wait_for_action().await;
    context.wait_for_action().await;
    context.connect().await?;
    near.expect_no_event(old).await
}

async fn a_reused_queue_pair_number_is_rejected_as_stale_once(
    context: TestContext<'_>,
) -> anyhow::Result<()> {
    let (near, far) = (context.near(), context.far());
    let listener = near.listen().await?;
    let qp_number = far.create_queue_pair().await?;
    let active = far.resolve_port(listener.port).await?;
    far.run_step(connect_step(active, qp_number, "")).await?;
    let request = near.expect_request(listener).await?;
    let old = near.accept(&request, "").await?;
    far.finish_connect(active).await?;
    near.expect_event(old, EventNumber::ESTABLISHED, 0).await?;
    context.wait_for_action().await;
    context.wait_for_action().await;
    context.wait_for_action().await;
    let refused = far.resolve_port(listener.port).await?;
    far.run_step(connect_step(refused, qp_number, "")).await?;
    far.expect_event(refused, EventNumber::REJECTED, STALE)
        .await?;
    near.expect_event(old, EventNumber::DISCONNECTED, 0).await?;
    let again = far.resolve_port(listener.port).await?;
    far.run_step(connect_step(again, qp_number, "")).await?;
    let request = near.expect_request(listener).await?;
    let new = near.accept(&request, "").await?;
    far.finish_connect(again).await?;
    near.expect_event(new, EventNumber::ESTABLISHED, 0).await?;
    Ok(())
}

async fn a_reused_queue_pair_number_in_a_response_is_rejected_as_stale(
    context: TestContext<'_>,
) -> anyhow::Result<()> {
    let (near, far) = (context.near(), context.far());
    let listener = far.listen().await?;
    let qp_number = far.create_queue_pair().await?;
    let old = near.resolve_port(listener.port).await?;
    near.connect(old, "").await?;
    let request = far.expect_request(listener).await?;
    let passive = far.accept_with(&request, qp_number, "").await?;
    near.finish_connect(old).await?;
    far.expect_event(passive, EventNumber::ESTABLISHED, 0)
        .await?;
    context.wait_for_action().await;
    context.wait_for_action().await;
    let listener = far.listen_on_port(listener.port).await?;
    context.wait_for_action().await;
    let active = near.resolve_port(listener.port).await?;
    near.connect(active, "").await?;
    let request = far.expect_request(listener).await?;
    let passive = far.accept_with(&request, qp_number, "").await?;
    far.expect_event(passive, EventNumber::REJECTED, STALE)
        .await?;
    near.expect_event(old, EventNumber::DISCONNECTED, 0).await?;
    // The kernel has stopped sending the request and reports no event.
    near.expect_no_event(active).await?;
    near.run_step(Step::Destroy { id: active.id }).await
}
