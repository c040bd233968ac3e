//! The far guest is killed and not restarted.

use std::time::Instant;

use rdmacm_abi::EventNumber;
use rdmacm_init::Step;

use super::soft_device::SoftDevice;
use super::status::{ETIMEDOUT, TIMED_OUT};
use super::test_context::TestContext;

super::cases!(
    short BOTH, long NEITHER: resolving_the_address_of_a_dead_peer_times_out;
    short SIW, long RXE: a_request_to_a_dead_peer_times_out,
        a_request_that_a_dead_peer_had_received_times_out,
        disconnecting_from_a_dead_peer_completes,
        accepting_a_dead_peer_is_never_acknowledged,
        no_event_reports_a_dead_peer;
);

/// First the tests wait for each other, then for the kill.
async fn wait_for_kill(context: TestContext<'_>) {
    context.wait_for_action().await;
    context.wait_for_action().await;
}

/// The neighbor table has no entry for it.
async fn resolving_the_address_of_a_dead_peer_times_out(
    context: TestContext<'_>,
) -> anyhow::Result<()> {
    let near = context.near();
    let id = near.create_id().await?;
    wait_for_kill(context).await;
    // Tests of an earlier group may have added an entry.
    let interface = context.device.interface();
    near.run_shell(format!("ip -6 neigh flush dev {interface}"))
        .await?;
    let step = Step::ResolveAddr {
        id: id.id,
        address: context.far().address_v6(7471),
        timeout_ms: 2000,
    };
    near.run_step(step).await?;
    near.expect_event(id, EventNumber::ADDR_ERROR, TIMED_OUT)
        .await?;
    Ok(())
}

/// A permanent neighbor entry lets the address resolve, so that only the request times out.
async fn a_request_to_a_dead_peer_times_out(context: TestContext<'_>) -> anyhow::Result<()> {
    let near = context.near();
    near.add_permanent_neighbor().await?;
    near.shorten_tcp_connect().await?;
    wait_for_kill(context).await;
    let active = near.resolve_port(7471).await?;
    match context.device {
        SoftDevice::Rxe => {
            let began = Instant::now();
            near.connect(active, "").await?;
            let at_least = context.device.min_request_timeout();
            let seen = near.expect_late_event(
                began,
                at_least,
                active,
                EventNumber::UNREACHABLE,
                TIMED_OUT,
            );
            seen.await
        }
        SoftDevice::Siw => near.expect_connect_errno(active, ETIMEDOUT).await,
    }
}

/// The request is sent once all tests are ready: on siw it waits for its reply for ten seconds only.
async fn a_request_that_a_dead_peer_had_received_times_out(
    context: TestContext<'_>,
) -> anyhow::Result<()> {
    let (near, far) = (context.near(), context.far());
    let listener = far.listen().await?;
    let active = near.resolve_port(listener.port).await?;
    context.wait_for_action().await;
    let began = Instant::now();
    near.connect(active, "").await?;
    far.expect_request(listener).await?;
    context.wait_for_action().await;
    let at_least = context.device.min_request_timeout();
    let seen = near.expect_late_event(began, at_least, active, EventNumber::UNREACHABLE, TIMED_OUT);
    seen.await
}

/// RoCE waits for the RTU. iWARP reports the connection as established. The request is sent once all
/// tests are ready: on siw it waits for its reply for ten seconds only.
async fn accepting_a_dead_peer_is_never_acknowledged(
    context: TestContext<'_>,
) -> anyhow::Result<()> {
    let (near, far) = (context.near(), context.far());
    let listener = near.listen().await?;
    let active = far.resolve_port(listener.port).await?;
    context.wait_for_action().await;
    far.connect(active, "").await?;
    let request = near.expect_request(listener).await?;
    context.wait_for_action().await;
    let began = Instant::now();
    let passive = near.accept(&request, "").await?;
    match context.device {
        SoftDevice::Rxe => {
            let at_least = context.device.min_request_timeout();
            let seen = near.expect_late_event(
                began,
                at_least,
                passive,
                EventNumber::UNREACHABLE,
                TIMED_OUT,
            );
            seen.await
        }
        SoftDevice::Siw => {
            near.expect_event(passive, EventNumber::ESTABLISHED, 0)
                .await?;
            Ok(())
        }
    }
}

async fn disconnecting_from_a_dead_peer_completes(context: TestContext<'_>) -> anyhow::Result<()> {
    let near = context.near();
    let (active, _) = context.connect().await?;
    wait_for_kill(context).await;
    let began = Instant::now();
    near.run_step(Step::Disconnect { id: active.id }).await?;
    let status = context.device.unanswered_disconnect_status();
    let at_least = context.device.min_disconnect_timeout();
    let seen = near.expect_late_event(began, at_least, active, EventNumber::DISCONNECTED, status);
    seen.await
}

/// Not in the time after which a request fails, nor until the other tests have ended.
async fn no_event_reports_a_dead_peer(context: TestContext<'_>) -> anyhow::Result<()> {
    let near = context.near();
    let (active, _) = context.connect().await?;
    wait_for_kill(context).await;
    context.let_pass(context.device.min_request_timeout()).await;
    context.wait_for_action().await;
    near.expect_no_event(active).await
}
