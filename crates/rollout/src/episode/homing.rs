//! Going back while on the start page: the first time in a row reloads it, the second and third do nothing, and
//! the third ends a train episode.

use crate::{
    config::Split,
    policy::{ActionError, ResolvedAction},
};
use proto::Command;

const MOST_IN_A_ROW: u32 = 3;

pub(crate) struct Homing {
    start: String,
    in_a_row: u32,
}

impl Homing {
    /// `start` is where the start page ended up, after its redirects.
    pub(crate) fn new(start: &str) -> Self {
        Self { start: plain(start), in_a_row: 0 }
    }

    fn at_home(&self, url: &str) -> bool {
        plain(url) == self.start
    }

    /// Counts this action; true when it was one going back too many.
    pub(crate) fn ends_episode(&mut self, goes_back: bool, url: &str, split: Split) -> bool {
        let counts = goes_back && self.at_home(url);
        self.in_a_row = if counts { self.in_a_row + 1 } else { 0 };
        counts && self.in_a_row >= MOST_IN_A_ROW && split == Split::Train
    }

    /// What is really to be done for the action just counted.
    pub(crate) fn command(
        &self,
        goes_back: bool,
        url: &str,
        start_url: &str,
        step: Result<ResolvedAction, ActionError>,
    ) -> Result<ResolvedAction, ActionError> {
        match (goes_back && self.at_home(url), self.in_a_row) {
            (true, 1) => Ok(ResolvedAction::Command(Command::VisitPage { url: start_url.to_owned() })),
            (true, _) => Ok(ResolvedAction::Wait { seconds: 0.0 }),
            (false, _) => step,
        }
    }
}

/// The address without what does not make it another page.
fn plain(url: &str) -> String {
    url.split('#').next().unwrap_or_default().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "http://a.test/";

    fn back() -> Result<ResolvedAction, ActionError> {
        Ok(ResolvedAction::Command(Command::Back))
    }

    #[test]
    fn the_first_going_back_at_home_reloads_and_the_next_two_do_nothing() {
        let mut homing = Homing::new(START);
        assert!(!homing.ends_episode(true, "http://a.test", Split::Train));
        let reload = Ok(ResolvedAction::Command(Command::VisitPage { url: START.into() }));
        assert_eq!(homing.command(true, "http://a.test/#top", START, back()), reload);
        assert!(!homing.ends_episode(true, START, Split::Train));
        assert_eq!(homing.command(true, START, START, back()), Ok(ResolvedAction::Wait { seconds: 0.0 }));
        assert!(homing.ends_episode(true, START, Split::Train), "the third ends a train episode");
    }

    #[test]
    fn a_test_episode_goes_on() {
        let mut homing = Homing::new(START);
        for _ in 0..5 {
            assert!(!homing.ends_episode(true, START, Split::Test));
        }
        assert_eq!(homing.command(true, START, START, back()), Ok(ResolvedAction::Wait { seconds: 0.0 }));
    }

    #[test]
    fn anything_between_starts_the_count_anew() {
        let mut homing = Homing::new(START);
        homing.ends_episode(true, START, Split::Train);
        homing.ends_episode(true, START, Split::Train);
        homing.ends_episode(false, START, Split::Train);
        assert!(!homing.ends_episode(true, START, Split::Train));
        homing.ends_episode(true, "http://a.test/else", Split::Train);
        assert_eq!(homing.command(true, "http://a.test/else", START, back()), back());
    }
}
