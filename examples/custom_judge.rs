//! Scores the saved trajectories of a run again with a judge of our own: the answer must match the reference answer, and the
//! agent must have needed at most eight steps. Rewrites the rewards under the given save path.

use std::{env, error::Error};

use futures_util::future::BoxFuture;
use proto::trajectory::{Outcome, Trajectory};
use rollout::judge::{
    CustomJudge, Judge, Verdict,
    rejudge::{RejudgeOptions, rejudge},
};
use store::SavePath;

struct EfficiencyJudge {
    max_steps: usize,
}

impl CustomJudge for EfficiencyJudge {
    fn judge<'a>(&'a self, trajectory: &'a Trajectory) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let verdict = Judge::Reference.judge(trajectory).await;
            let steps = trajectory.steps.len();
            if verdict.outcome == Outcome::Success && steps > self.max_steps {
                let limit = self.max_steps;
                return Verdict::new(
                    Outcome::Failure,
                    format!("Correct, but in {steps} steps instead of {limit}."),
                );
            }
            verdict
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let save_path = env::args().nth(1).ok_or("give the save path of a run, for example: demo")?;
    let judge = Judge::Custom(Box::new(EfficiencyJudge { max_steps: 8 }));
    let all = RejudgeOptions { only_unjudged: false, iteration: None, split: None, concurrency: 8 };
    let report = rejudge(&SavePath::new(save_path), &judge, &all).await?;
    println!(
        "{} judged, {} changed, {} still unjudged",
        report.judged, report.changed, report.still_unjudged
    );
    Ok(())
}
