//! Both guests run.

use anyhow::ensure;
use rdmacm_abi::EventNumber;
use rdmacm_init::Step;

use super::soft::Soft;
use super::stage::Scene;
use super::status::{CONSUMER_DEFINED, ECONNREFUSED, INVALID_SERVICE, RESET, TIMED_OUT};

super::cases!(
    short BOTH, long NEITHER: a_connection_is_made_and_ended,
        a_rejection_carries_data,
        nobody_listens,
        nobody_has_the_address;
    short RXE, long NEITHER: a_parting_is_all_that_is_heard;
);

async fn a_connection_is_made_and_ended(scene: Scene<'_>) -> anyhow::Result<()> {
    let (active, passive) = scene.connection().await?;
    scene.parts(active, passive).await
}

async fn a_rejection_carries_data(scene: Scene<'_>) -> anyhow::Result<()> {
    let (near, far) = (scene.near(), scene.far());
    let listener = far.listener().await?;
    let active = near.on_its_way(listener.port).await?;
    near.connects(active, "hello").await?;
    let request = far.requested(listener).await?;
    ensure!(request.data == "hello", "{request:?}");
    let (id, data) = (request.id, "no".to_owned());
    far.does(Step::Reject { id, data }).await?;
    let status = match scene.soft {
        Soft::Rxe => CONSUMER_DEFINED,
        Soft::Siw => RESET,
    };
    let rejected = near.sees(active, EventNumber::REJECTED, status).await?;
    ensure!(rejected.data == "no", "{rejected:?}");
    Ok(())
}

async fn nobody_listens(scene: Scene<'_>) -> anyhow::Result<()> {
    let near = scene.near();
    let active = near.on_its_way(scene.stage.number()).await?;
    match scene.soft {
        Soft::Rxe => {
            near.connects(active, "").await?;
            let seen = near.sees(active, EventNumber::REJECTED, INVALID_SERVICE);
            seen.await.map(drop)
        }
        Soft::Siw => near.is_refused(active, ECONNREFUSED).await,
    }
}

async fn nobody_has_the_address(scene: Scene<'_>) -> anyhow::Result<()> {
    let near = scene.near();
    let id = near.id().await?;
    let step = Step::ResolveAddr {
        id: id.id,
        address: scene.soft.nobody(7471),
        timeout_ms: 1000,
    };
    near.does(step).await?;
    near.sees(id, EventNumber::ADDR_ERROR, TIMED_OUT).await?;
    Ok(())
}

/// The peer is ready, which never arrives, and parts: no word says that it was there.
async fn a_parting_is_all_that_is_heard(scene: Scene<'_>) -> anyhow::Result<()> {
    let (near, far) = (scene.near(), scene.far());
    let interface = scene.soft.interface();
    // Behind 40 bytes of IPv6, 8 of UDP and 20 of the transport's headers, a message of
    // the connection manager (class 7) that says so (0x14). No other story has IPv6.
    near.runs(format!(
        "tc qdisc add dev {interface} root handle 1: prio bands 4 && \
         tc qdisc add dev {interface} parent 1:4 netem loss 100% && \
         tc filter add dev {interface} parent 1: protocol ipv6 u32 \
         match u8 0x07 0xff at 69 match u16 0x14 0xffff at 84 flowid 1:4"
    ))
    .await?;
    let address = far.address_v6(scene.stage.number());
    let listener = far.listener_on(address).await?;
    let active = near.on_its_way_to(address).await?;
    near.connects(active, "").await?;
    let request = far.requested(listener).await?;
    let passive = far.accepts(&request, "").await?;
    near.is_connected(active).await?;
    scene.parts(active, passive).await?;
    near.runs(format!("tc qdisc del dev {interface} root"))
        .await
}
