//! Both guests are well.

use anyhow::ensure;
use rdmacm_abi::EventNumber;
use rdmacm_init::Step;

use super::stage::Scene;

super::cases!(
    RXE: a_connection_is_made_and_ended, a_rejection_carries_data, nobody_listens;
    BOTH: nobody_has_the_address;
);

const ETIMEDOUT: i32 = -110;
/// `IB_CM_REJ_INVALID_SERVICE_ID`
const NO_LISTENER: i32 = 8;
/// `IB_CM_REJ_CONSUMER_DEFINED`
const CONSUMER_DEFINED: i32 = 28;

async fn a_connection_is_made_and_ended(scene: Scene<'_>) -> anyhow::Result<()> {
    let (near, far) = (scene.near(), scene.far());
    let (active, passive) = scene.connection().await?;
    near.does(Step::Disconnect { id: active.id }).await?;
    far.sees(passive, EventNumber::DISCONNECTED, 0).await?;
    far.does(Step::Disconnect { id: passive.id }).await?;
    near.sees(active, EventNumber::DISCONNECTED, 0).await?;
    Ok(())
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
    let rejected = near.sees(active, EventNumber::REJECTED, CONSUMER_DEFINED);
    let rejected = rejected.await?;
    ensure!(rejected.data == "no", "{rejected:?}");
    Ok(())
}

async fn nobody_listens(scene: Scene<'_>) -> anyhow::Result<()> {
    let near = scene.near();
    let active = near.on_its_way(scene.stage.number()).await?;
    near.connects(active, "").await?;
    near.sees(active, EventNumber::REJECTED, NO_LISTENER)
        .await?;
    Ok(())
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
    near.sees(id, EventNumber::ADDR_ERROR, ETIMEDOUT).await?;
    Ok(())
}
