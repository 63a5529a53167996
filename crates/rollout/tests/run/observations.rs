//! What the agent observes at each step, and how its actions are executed.

use std::time::Duration;

use proto::{InteractionMode, trajectory::Outcome};
use rollout::config::Split;
use testkit::{
    sim_farm::{Fault, SimFarmOptions},
    sim_model::ModelReply,
};

use crate::harness::{
    Harness, START, action_keys, assert_ended_early, clicks_then_answers, ending, observations, outcome, task,
};

#[tokio::test]
async fn episode_continues_until_the_answer() {
    let mut harness = Harness::faulty(|_| Fault::None, clicks_then_answers(3)).await;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(action_keys(&trajectory), ["click", "click", "answer"]);
    assert_eq!((outcome(&trajectory), trajectory.steps[2].reward.reward), (Outcome::Success, 1));
    assert_eq!(harness.farm.commands(), ["visit_page", "click_coords", "click_coords"]);
    assert!(harness.farm.active_leases().is_empty(), "the browser is released");
    for (number, step) in trajectory.steps.iter().enumerate() {
        let path = std::path::Path::new(&step.observation.image_path);
        assert!(path.is_file() && path.ends_with(format!("step_{number:03}.png")), "{path:?}");
        assert!(path.starts_with(harness.root().join("images")));
    }
    assert_eq!(trajectory.steps[0].same_as_next_screenshot, Some(false));
    assert_eq!(trajectory.steps[2].same_as_next_screenshot, Some(false));
}

#[tokio::test]
async fn saved_prompts_equal_sent_prompts() {
    for mode in [InteractionMode::Coordinates, InteractionMode::SetOfMarks] {
        let mut harness = Harness::faulty(|_| Fault::None, clicks_then_answers(8)).await;
        harness.mode = mode;
        harness.page_text_lines = if mode == InteractionMode::SetOfMarks { 50 } else { 0 };
        let trajectory = harness.run_one(task(0)).await;
        let asked = harness.policy.requests();
        assert_eq!((trajectory.steps.len(), asked.len()), (8, 8));
        for (step, question) in trajectory.steps.iter().zip(&asked) {
            assert_eq!(step.response.raw_prompt, question.body["messages"].to_string());
            let expected = format!("Text of the page:\\n```\\nYou are at {}\\n```", step.observation.url);
            assert_eq!(
                step.response.raw_prompt.contains(&expected),
                harness.page_text_lines > 0,
                "{expected}"
            );
        }
    }
}

#[tokio::test]
async fn farm_without_step_gives_the_same_trajectory() {
    for mode in [InteractionMode::Coordinates, InteractionMode::SetOfMarks] {
        let mut found = Vec::new();
        for combined_calls in [true, false] {
            let farm = SimFarmOptions { combined_calls, ..SimFarmOptions::default() };
            let mut harness = Harness::new(farm, clicks_then_answers(3)).await;
            harness.mode = mode;
            let trajectory = harness.run_one(task(0)).await;
            let combined = harness.farm.max_in_flight("step") + harness.farm.max_in_flight("observe");
            assert_eq!(combined > 0, combined_calls);
            let pages = trajectory.steps.iter().map(|step| {
                (
                    step.observation.url.clone(),
                    step.observation.title.clone(),
                    step.observation.ac_tree.clone(),
                )
            });
            found.push((action_keys(&trajectory), observations(&trajectory), pages.collect::<Vec<_>>()));
        }
        assert_eq!(found[0], found[1]);
        assert_eq!(found[0].2[0].2.is_some(), mode == InteractionMode::SetOfMarks);
    }
}

#[tokio::test]
async fn max_steps_ends_episode_without_reward() {
    let mut harness = Harness::faulty(|_| Fault::None, |_| ModelReply::click(1, 1)).await;
    let trajectory = harness.run_one(proto::trajectory::Task { max_steps: 3, ..task(0) }).await;
    assert_eq!(action_keys(&trajectory), ["click"; 3]);
    assert_eq!((outcome(&trajectory), ending(&trajectory)), (Outcome::Failure, "out of steps".into()));
    assert_eq!(trajectory.steps[2].reward.reward, 0);
    assert_eq!(
        harness.farm.commands().len(),
        3,
        "the last action is not executed because its result would not be observed"
    );
}

#[tokio::test]
async fn failed_start_page_is_recorded_and_episode_continues() {
    let script = |call: &testkit::sim_farm::Call| {
        if call.url == START { Fault::NavigationFailed } else { Fault::None }
    };
    let mut harness = Harness::faulty(script, |question| match question.step() {
        1 => ModelReply::navigate("http://else.test/"),
        _ => ModelReply::answer("42"),
    })
    .await;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(action_keys(&trajectory), ["navigate", "answer"]);
    assert_eq!(trajectory.steps[1].observation.url, "http://else.test/");
    let noted = std::fs::read_to_string(harness.root().join("navigation_error_websites.txt")).unwrap();
    assert_eq!(noted, format!("{START}\n"));
    assert_eq!(
        harness.farm.commands().iter().filter(|command| *command == "visit_page").count(),
        4,
        "two retries"
    );
}

#[tokio::test]
async fn blank_screenshot_is_retried_until_page_is_drawn() {
    let script = |call: &testkit::sim_farm::Call| {
        let early = call.path == "/step" || (call.path == "/observe" && (1..3).contains(&call.nth));
        if early { Fault::BlankScreenshot } else { Fault::None }
    };
    let mut harness = Harness::faulty(script, clicks_then_answers(2)).await;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(action_keys(&trajectory), ["click", "answer"]);
    assert_eq!(outcome(&trajectory), Outcome::Success);
    assert_eq!(observations(&trajectory), [format!("The page changed; you are at {START}.")]);
}

#[tokio::test]
async fn permanently_blank_screenshot_fails_the_episode() {
    let white = |call: &testkit::sim_farm::Call| {
        if call.returns_screenshot() && (call.path == "/step" || call.nth > 0) {
            Fault::BlankScreenshot
        } else {
            Fault::None
        }
    };
    let mut harness = Harness::faulty(white, |_| ModelReply::click(1, 1)).await;
    harness.operation_timeout = Duration::from_millis(400);
    let trajectory = harness.run_one(task(0)).await;
    assert_ended_early(&trajectory, 1);
    assert_eq!(
        (outcome(&trajectory), ending(&trajectory)),
        (Outcome::Failure, "the page stayed blank".into())
    );
}

#[tokio::test]
async fn blank_after_navigate_keeps_previous_screenshot() {
    let white = |call: &testkit::sim_farm::Call| {
        if call.returns_screenshot() && (call.path == "/step" || call.nth > 0) {
            Fault::BlankScreenshot
        } else {
            Fault::None
        }
    };
    let mut harness = Harness::faulty(white, |question| match question.step() {
        1 => ModelReply::navigate("http://nowhere.test/"),
        _ => ModelReply::answer("42"),
    })
    .await;
    harness.operation_timeout = Duration::from_millis(400);
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(action_keys(&trajectory), ["navigate", "answer"]);
    let expected = format!("The page http://nowhere.test/ could not be opened; you are still at {START}.");
    assert_eq!(observations(&trajectory), std::slice::from_ref(&expected));
    assert!(harness.policy.requests()[1].text.contains(&expected));
    let screenshot = |step: usize| std::fs::read(&trajectory.steps[step].observation.image_path).unwrap();
    assert_eq!(screenshot(0), screenshot(1), "the previous screenshot is used");
    assert_eq!(trajectory.steps[1].observation.url, START);
}

#[tokio::test]
async fn observation_states_change_and_url() {
    let script =
        |call: &testkit::sim_farm::Call| match (call.runs("click_coords"), call.nth, call.url.as_str()) {
            (true, 1, _) => Fault::NoEffect,
            (_, _, "http://broken.test/") => Fault::NavigationFailed,
            _ => Fault::None,
        };
    let mut harness = Harness::faulty(script, |question| match question.step() {
        1 | 2 => ModelReply::click(1, 1),
        3 => ModelReply::navigate("http://broken.test/"),
        4 => ModelReply::navigate("other.test"),
        _ => ModelReply::answer("42"),
    })
    .await;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(
        observations(&trajectory),
        [
            format!("The page changed; you are at {START}."),
            format!("The page did not change; you are at {START}."),
            format!("The page http://broken.test/ could not be opened; you are still at {START}."),
            "The page changed; you are at https://other.test.".to_owned(),
        ]
    );
    let same: Vec<_> = trajectory.steps.iter().map(|step| step.same_as_next_screenshot).collect();
    assert_eq!(same, [Some(false), Some(true), Some(true), Some(false), Some(false)]);
}

#[tokio::test]
async fn failed_command_does_not_end_the_episode() {
    for combined_calls in [true, false] {
        let script = |call: &testkit::sim_farm::Call| match call.nth {
            _ if !call.runs("click_coords") => Fault::None,
            0 => Fault::CommandFailed,
            _ => Fault::TruncatedResponse,
        };
        let farm = SimFarmOptions { combined_calls, ..SimFarmOptions::default() }.with_script(script);
        let mut harness = Harness::new(farm, clicks_then_answers(3)).await;
        let trajectory = harness.run_one(task(0)).await;
        assert_eq!(action_keys(&trajectory), ["click", "click", "answer"]);
        assert_eq!(outcome(&trajectory), Outcome::Success);
        let outcomes = observations(&trajectory);
        assert_eq!(outcomes[0], format!("The page did not change; you are at {START}."));
        assert_eq!(
            outcomes[1],
            format!("The page changed; you are at {START}."),
            "the command was executed although its response was lost"
        );
        let clicks = harness.farm.commands().iter().filter(|command| *command == "click_coords").count();
        assert_eq!(clicks, 2, "a click that may have happened is not sent again");
    }
}

#[tokio::test]
async fn repeated_back_on_start_page_ends_train_episode() {
    let mut harness = Harness::faulty(|_| Fault::None, |_| ModelReply::go_back()).await;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(action_keys(&trajectory), ["goback"; 3]);
    assert_eq!(harness.farm.commands(), ["visit_page", "visit_page"], "only one reload");
    assert_eq!(trajectory.steps[2].reward.reward, 0);
    assert_eq!(outcome(&trajectory), Outcome::Failure);
    assert_eq!(ending(&trajectory), "went back three times on the start page");
}

#[tokio::test]
async fn repeated_back_on_start_page_continues_test_episode() {
    let answer_at_five = |question: &testkit::sim_model::ModelRequest| match question.step() {
        5.. => ModelReply::answer("42"),
        _ => ModelReply::go_back(),
    };
    let mut harness = Harness::faulty(|_| Fault::None, answer_at_five).await;
    harness.split = Split::Test;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(action_keys(&trajectory), ["goback", "goback", "goback", "goback", "answer"]);
    assert_eq!(harness.farm.commands(), ["visit_page", "visit_page"]);
    assert_eq!(outcome(&trajectory), Outcome::Success);
}

#[tokio::test]
async fn back_on_another_page_navigates_back() {
    let mut harness = Harness::faulty(
        |_| Fault::None,
        |question| match question.step() {
            1 => ModelReply::navigate("http://else.test/"),
            2 => ModelReply::go_back(),
            _ => ModelReply::answer("42"),
        },
    )
    .await;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(harness.farm.commands(), ["visit_page", "visit_page", "back"]);
    assert_eq!(trajectory.steps[2].observation.url, START);
}

#[tokio::test]
async fn unusable_reply_waits_and_episode_continues() {
    let mut harness = Harness::faulty(
        |_| Fault::None,
        |question| match question.step() {
            1 => ModelReply::call("computer_use", &serde_json::json!({"action": "wait", "time": 0.01})),
            2 => ModelReply::call("computer_use", &serde_json::json!({"action": "left_click"})),
            _ => ModelReply::answer("42"),
        },
    )
    .await;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(action_keys(&trajectory), ["wait", "wait", "answer"]);
    assert_eq!(harness.farm.commands(), ["visit_page"], "a wait sends no command");
}

#[tokio::test]
async fn failed_navigation_is_retried() {
    let is_first = |call: &testkit::sim_farm::Call| {
        call.runs("visit_page") && call.url.contains("other.test") && call.nth == 1
    };
    let script = move |call: &testkit::sim_farm::Call| {
        if is_first(call) { Fault::NavigationFailed } else { Fault::None }
    };
    for combined_calls in [true, false] {
        let farm = SimFarmOptions { combined_calls, ..SimFarmOptions::default() }.with_script(script);
        let mut harness = Harness::new(farm, |question| match question.step() {
            1 => ModelReply::navigate("http://other.test/"),
            _ => ModelReply::answer("42"),
        })
        .await;
        let trajectory = harness.run_one(task(0)).await;
        assert_eq!(trajectory.steps[1].observation.url, "http://other.test/", "combined: {combined_calls}");
        assert!(!observations(&trajectory)[0].contains("failed"), "{:?}", observations(&trajectory));
    }
}

#[tokio::test]
async fn page_that_does_not_react_is_not_repeated() {
    let script = |call: &testkit::sim_farm::Call| {
        if call.returns_screenshot() && call.nth >= 1 { Fault::PageTimeout } else { Fault::None }
    };
    let mut harness = Harness::faulty(script, clicks_then_answers(9)).await;
    harness.limits.max_infra_retries = 3;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(
        (outcome(&trajectory), harness.farm.leases_granted()),
        (Outcome::Failure, 1),
        "{}",
        ending(&trajectory)
    );
    assert!(ending(&trajectory).starts_with("the page did not react"), "{}", ending(&trajectory));
}

#[tokio::test]
async fn truncated_reply_is_recognisable() {
    let mut harness = Harness::faulty(
        |_| Fault::None,
        |question| match question.step() {
            1 => ModelReply::Truncated("Action: I think".into()),
            _ => ModelReply::answer("42"),
        },
    )
    .await;
    let trajectory = harness.run_one(task(0)).await;
    let reasons: Vec<_> = trajectory.steps.iter().map(|step| step.extras.finish_reason.as_deref()).collect();
    assert_eq!(reasons, [Some("length"), Some("stop")]);
}

#[tokio::test]
async fn empty_reply_keeps_its_prompt() {
    let mut harness = Harness::faulty(
        |_| Fault::None,
        |question| match question.step() {
            1 => ModelReply::Reply(String::new()),
            _ => ModelReply::answer("42"),
        },
    )
    .await;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(action_keys(&trajectory), ["wait", "answer"]);
    assert!(trajectory.steps.iter().all(|step| step.response.raw_prompt.starts_with('[')));
}
