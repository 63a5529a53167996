//! Which phase comes next. Pure functions of state and configuration.

use store::loop_state::{IterationState, LoopState, Phase, PhaseStatus};

use crate::config::LoopConfig;

/// What a loop does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Begin the iteration with this number.
    Begin(u64),
    /// Run a phase of the last iteration.
    Run(Phase),
    Finished,
}

pub(crate) fn next(state: &LoopState, config: &LoopConfig) -> Next {
    let Some(iteration) = state.current() else { return Next::Begin(state.first_iteration) };
    match iteration.current() {
        Some(phase) => Next::Run(phase.phase),
        None if is_closing(config, iteration.number) => Next::Finished,
        None => Next::Begin(iteration.number + 1),
    }
}

/// Whether this is the iteration after the last one that trains. It shows that the last checkpoint can be served.
pub(crate) fn is_closing(config: &LoopConfig, number: u64) -> bool {
    number >= config.first_iteration + config.iterations
}

pub(crate) fn evaluates(config: &LoopConfig, number: u64) -> bool {
    let every = config.evaluate.every;
    if is_closing(config, number) {
        return config.evaluate.at_end;
    }
    every > 0 && (number - config.first_iteration.min(number)).is_multiple_of(every)
}

/// The phases of an iteration, in order.
pub(crate) fn phases(config: &LoopConfig, number: u64) -> impl Iterator<Item = Phase> {
    let is_closing = is_closing(config, number);
    let evaluates = evaluates(config, number);
    Phase::ALL.into_iter().filter(move |phase| match phase {
        Phase::Serve => true,
        Phase::Evaluate => evaluates,
        _ => !is_closing,
    })
}

/// Prepares the state of a loop that was stopped or killed: phases that did not end run again, and the model is served again
/// if something still needs it.
pub(crate) fn resume(iteration: &mut IterationState) {
    for phase in &mut iteration.phases {
        if matches!(phase.status, PhaseStatus::Running | PhaseStatus::Failed) {
            phase.status = PhaseStatus::Pending;
        }
        phase.failures = 0;
    }
    iteration.rollbacks = 0;
    let needs_server = |phase: Phase| matches!(phase, Phase::Collect | Phase::Evaluate);
    let is_needed = iteration.phases.iter().any(|phase| needs_server(phase.phase) && !phase.status.is_over());
    if is_needed && let Some(serve) = iteration.phase_mut(Phase::Serve) {
        serve.status = PhaseStatus::Pending;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::loop_state::{FORMAT, LoopStatus};

    fn config(first: u64, every: u64, at_end: bool) -> LoopConfig {
        let mut config = LoopConfig { iterations: 3, first_iteration: first, ..LoopConfig::default() };
        (config.evaluate.every, config.evaluate.at_end) = (every, at_end);
        config
    }

    #[test]
    fn evaluation_follows_its_rule() {
        for (first, every, at_end, wanted) in [
            (0, 0, false, [false, false, false, false]),
            (0, 1, false, [true, true, true, false]),
            (1, 2, true, [true, false, true, true]),
            (0, 0, true, [false, false, false, true]),
        ] {
            let config = config(first, every, at_end);
            let found: Vec<bool> = (first..first + 4).map(|number| evaluates(&config, number)).collect();
            assert_eq!(found, wanted, "first {first}, every {every}, at_end {at_end}");
        }
    }

    #[test]
    fn loop_walks_through_all_phases_and_closes() {
        let config = config(1, 2, true);
        let mut state = LoopState {
            format: FORMAT,
            status: LoopStatus::Running,
            reason: None,
            run_id: String::new(),
            first_iteration: 1,
            iterations_planned: 3,
            iterations: Vec::new(),
            dead_ranks: Vec::new(),
            last_failure: None,
        };
        let mut walked: Vec<String> = Vec::new();
        loop {
            match next(&state, &config) {
                Next::Begin(number) => {
                    walked.push(format!("| {number}:"));
                    let phases = phases(&config, number);
                    state.iterations.push(IterationState::new(number, "model".into(), phases));
                }
                Next::Run(phase) => {
                    walked.push(phase.to_string());
                    let iteration = state.iterations.last_mut().unwrap();
                    iteration.phase_mut(phase).unwrap().status = PhaseStatus::Done;
                }
                Next::Finished => break,
            }
        }
        let trains = "export train verify switch";
        let wanted = format!(
            "| 1: serve collect evaluate {trains} | 2: serve collect {trains} | 3: serve collect evaluate {trains} | 4: serve evaluate"
        );
        assert_eq!(walked.join(" "), wanted);
    }

    #[test]
    fn interrupted_phase_runs_again_with_the_server_that_it_needs() {
        for (running, served_again) in
            [(Phase::Collect, true), (Phase::Evaluate, true), (Phase::Train, false)]
        {
            let mut iteration = IterationState::new(0, "model".into(), Phase::ALL);
            for phase in &mut iteration.phases {
                phase.failures = 1;
                phase.status = match phase.phase.cmp(&running) {
                    std::cmp::Ordering::Less => PhaseStatus::Done,
                    std::cmp::Ordering::Equal => PhaseStatus::Running,
                    std::cmp::Ordering::Greater => PhaseStatus::Pending,
                };
            }
            resume(&mut iteration);
            let first = if served_again { Phase::Serve } else { running };
            assert_eq!(iteration.current().unwrap().phase, first, "{running}");
            assert_eq!(iteration.phase(running).unwrap().status, PhaseStatus::Pending);
            assert!(iteration.phases.iter().all(|phase| phase.failures == 0));
        }
    }
}
