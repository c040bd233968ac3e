//! Both guests run.

use anyhow::ensure;
use rdmacm_abi::EventNumber;
use rdmacm_init::Step;

use super::soft_device::SoftDevice;
use super::status::{CONSUMER_DEFINED, ECONNREFUSED, INVALID_SERVICE, RESET, TIMED_OUT};
use super::test_context::TestContext;

super::cases!(
    short BOTH, long NEITHER: a_connection_is_established_and_disconnected,
        a_rejection_carries_private_data,
        a_request_without_a_listener_is_rejected,
        resolving_an_unused_address_times_out;
    short RXE, long NEITHER: without_an_rtu_the_passive_side_sees_only_the_disconnect;
);

async fn a_connection_is_established_and_disconnected(
    context: TestContext<'_>,
) -> anyhow::Result<()> {
    let (active, passive) = context.connect().await?;
    context.disconnect(active, passive).await
}

async fn a_rejection_carries_private_data(context: TestContext<'_>) -> anyhow::Result<()> {
    let (near, far) = (context.near(), context.far());
    let listener = far.listen().await?;
    let active = near.resolve_port(listener.port).await?;
    near.connect(active, "hello").await?;
    let request = far.expect_request(listener).await?;
    ensure!(request.data == "hello", "{request:?}");
    let (id, data) = (request.id, "no".to_owned());
    far.run_step(Step::Reject { id, data }).await?;
    let status = match context.device {
        SoftDevice::Rxe => CONSUMER_DEFINED,
        SoftDevice::Siw => RESET,
    };
    let rejected = near
        .expect_event(active, EventNumber::REJECTED, status)
        .await?;
    ensure!(rejected.data == "no", "{rejected:?}");
    Ok(())
}

async fn a_request_without_a_listener_is_rejected(context: TestContext<'_>) -> anyhow::Result<()> {
    let near = context.near();
    let active = near.resolve_port(context.shared.unique_number()).await?;
    match context.device {
        SoftDevice::Rxe => {
            near.connect(active, "").await?;
            let seen = near.expect_event(active, EventNumber::REJECTED, INVALID_SERVICE);
            seen.await.map(drop)
        }
        SoftDevice::Siw => near.expect_connect_errno(active, ECONNREFUSED).await,
    }
}

async fn resolving_an_unused_address_times_out(context: TestContext<'_>) -> anyhow::Result<()> {
    let near = context.near();
    let id = near.create_id().await?;
    let step = Step::ResolveAddr {
        id: id.id,
        address: context.device.unused_address(7471),
        timeout_ms: 1000,
    };
    near.run_step(step).await?;
    near.expect_event(id, EventNumber::ADDR_ERROR, TIMED_OUT)
        .await?;
    Ok(())
}

/// The network drops the RTU of the active side, which then disconnects. The passive side
/// gets no `ESTABLISHED` event.
async fn without_an_rtu_the_passive_side_sees_only_the_disconnect(
    context: TestContext<'_>,
) -> anyhow::Result<()> {
    let (near, far) = (context.near(), context.far());
    let interface = context.device.interface();
    // After 40 bytes of IPv6, 8 of UDP and 20 of the transport's headers: a message of the
    // connection manager (class 7) that is an RTU (0x14). No other test uses IPv6.
    near.run_shell(format!(
        "tc qdisc add dev {interface} root handle 1: prio bands 4 && \
         tc qdisc add dev {interface} parent 1:4 netem loss 100% && \
         tc filter add dev {interface} parent 1: protocol ipv6 u32 \
         match u8 0x07 0xff at 69 match u16 0x14 0xffff at 84 flowid 1:4"
    ))
    .await?;
    let address = far.address_v6(context.shared.unique_number());
    let listener = far.listen_on(address).await?;
    let active = near.resolve(address).await?;
    near.connect(active, "").await?;
    let request = far.expect_request(listener).await?;
    let passive = far.accept(&request, "").await?;
    near.finish_connect(active).await?;
    context.disconnect(active, passive).await?;
    near.run_shell(format!("tc qdisc del dev {interface} root"))
        .await
}
