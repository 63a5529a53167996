//! Groups of attempts are delivered when their last attempt has finished, complete or masked.

use serde_json::{Value, json};
use testkit::{
    sim_farm::{Call, Fault, SimFarmOptions},
    sim_model::ModelRequest,
};

use crate::harness::{StreamTest, answer_at_second_step, assert_success};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_are_delivered_complete_or_masked() {
    // Some browsers die at their first action. Without retries their attempts are lost.
    let script = |call: &Call| {
        let is_lost = call.lease % 5 == 2 && call.runs("click_coords");
        if is_lost { Fault::InstanceLost } else { Fault::None }
    };
    let farm = SimFarmOptions::default().with_script(script);
    let test = StreamTest::new(5, farm, |request: &ModelRequest| answer_at_second_step(request)).await;
    let more = ["env_config.group_size=3", "env_config.max_infra_retries=0"];
    let (mut webgym, consumer) = test.start(&more).await;
    let items = consumer.read(&[]).await;
    let groups: Vec<&Value> = items.iter().filter(|item| item["type"] == "group").collect();
    assert_eq!(groups.len(), 5);
    let mut masked = 0;
    for group in &groups {
        let members = group["trajectories"].as_array().unwrap();
        assert_eq!(members.len(), 3);
        let indices: Vec<i64> = members.iter().map(|one| one["trajectory_index"].as_i64().unwrap()).collect();
        assert_eq!(indices, [indices[0], indices[0] + 1, indices[0] + 2]);
        for member in members {
            assert_eq!(member["group_id"], group["group_id"]);
            let is_lost = member["outcome"] == "infra_lost";
            masked += usize::from(is_lost);
            assert_eq!(member["is_masked"], is_lost);
            assert_eq!(member["reward"], if is_lost { Value::Null } else { json!(1) });
            if is_lost {
                let steps = member["steps"].as_array().unwrap();
                assert!(steps.iter().all(|step| step["reward"]["reward"].is_null()), "{steps:?}");
            }
        }
    }
    assert!(masked > 0, "some attempts were lost");
    assert_eq!(consumer.status().await["items"], "groups");
    consumer.acknowledge(groups[4]).await;
    assert_success(&mut webgym).await;
}
