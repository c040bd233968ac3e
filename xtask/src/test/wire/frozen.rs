//! The far guest is frozen for longer than any timeout and then resumed.

use std::time::Instant;

use anyhow::ensure;
use rdmacm_abi::EventNumber;
use rdmacm_init::{Answer, Step};

use super::soft_device::SoftDevice;
use super::status::{ECONNRESET, ETIMEDOUT, TIMED_OUT};
use super::test_context::TestContext;

super::cases!(
    short SIW, long RXE: a_request_to_a_frozen_peer_times_out,
        a_request_that_a_frozen_peer_had_received_times_out,
        disconnecting_from_a_frozen_peer_completes,
        no_event_reports_a_frozen_peer;
);

async fn a_request_to_a_frozen_peer_times_out(context: TestContext<'_>) -> anyhow::Result<()> {
    let (near, far) = (context.near(), context.far());
    near.shorten_tcp_connect().await?;
    let listener = far.listen().await?;
    let active = near.resolve_port(listener.port).await?;
    context.wait_for_action().await;
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
            seen.await?;
            context.wait_for_action().await;
            // The request has waited on the wire; it arrives although the sender gave up.
            let request = far.expect_request(listener).await?;
            far.run_step(Step::Destroy { id: request.id }).await?;
        }
        SoftDevice::Siw => {
            near.expect_connect_errno(active, ETIMEDOUT).await?;
            context.wait_for_action().await;
            far.expect_no_event(listener).await?;
        }
    }
    near.expect_no_event(active).await
}

async fn a_request_that_a_frozen_peer_had_received_times_out(
    context: TestContext<'_>,
) -> anyhow::Result<()> {
    let (near, far) = (context.near(), context.far());
    let listener = far.listen().await?;
    let active = near.resolve_port(listener.port).await?;
    let began = Instant::now();
    near.connect(active, "").await?;
    let request = far.expect_request(listener).await?;
    context.wait_for_action().await;
    let at_least = context.device.min_request_timeout();
    let seen = near.expect_late_event(began, at_least, active, EventNumber::UNREACHABLE, TIMED_OUT);
    seen.await?;
    context.wait_for_action().await;
    match context.device {
        // The kernel accepts: it does not know that the peer gave up.
        SoftDevice::Rxe => drop(far.accept(&request, "").await?),
        SoftDevice::Siw => {
            // One worker of siw's processes everything in order: it has closed the first
            // connection when it reports a later one.
            let later = near.resolve_port(listener.port).await?;
            near.connect(later, "").await?;
            far.expect_request(listener).await?;
            let accepted = far.try_accept(&request).await?;
            ensure!(accepted == Answer::Errno(ECONNRESET), "{accepted:?}");
        }
    }
    Ok(())
}

async fn disconnecting_from_a_frozen_peer_completes(
    context: TestContext<'_>,
) -> anyhow::Result<()> {
    let (near, far) = (context.near(), context.far());
    let (active, passive) = context.connect().await?;
    context.wait_for_action().await;
    let began = Instant::now();
    near.run_step(Step::Disconnect { id: active.id }).await?;
    let status = context.device.unanswered_disconnect_status();
    let at_least = context.device.min_disconnect_timeout();
    let seen = near.expect_late_event(began, at_least, active, EventNumber::DISCONNECTED, status);
    seen.await?;
    context.wait_for_action().await;
    far.expect_event(passive, EventNumber::DISCONNECTED, 0)
        .await?;
    Ok(())
}

/// Not in the time after which a request fails, nor until the other tests have ended.
async fn no_event_reports_a_frozen_peer(context: TestContext<'_>) -> anyhow::Result<()> {
    let (near, far) = (context.near(), context.far());
    let (active, passive) = context.connect().await?;
    context.wait_for_action().await;
    context.let_pass(context.device.min_request_timeout()).await;
    context.wait_for_action().await;
    near.expect_no_event(active).await?;
    far.expect_no_event(passive).await?;
    context.disconnect(active, passive).await
}
