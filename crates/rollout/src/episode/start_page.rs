//! Going back on the start page, where there is no earlier page. In a row, the first time reloads the page, the second does
//! nothing, and the third ends a train episode.

use proto::Command;

use crate::{
    config::Split,
    policy::{ActionError, ResolvedAction},
};

const MAX_BACKS_IN_A_ROW: u32 = 3;

/// The start page, and how often the agent went back on it in a row.
pub(super) struct StartPage {
    url: String,
    backs_in_a_row: u32,
}

impl StartPage {
    /// `url` is the address of the start page after its redirects.
    pub(super) fn new(url: &str) -> Self {
        Self { url: normalized(url), backs_in_a_row: 0 }
    }

    fn is_at(&self, url: &str) -> bool {
        normalized(url) == self.url
    }

    /// Counts going back on the start page; any other action resets the count. Returns whether the action ends the episode.
    pub(super) fn count_back(&mut self, goes_back: bool, url: &str, split: Split) -> bool {
        let counts = goes_back && self.is_at(url);
        self.backs_in_a_row = if counts { self.backs_in_a_row + 1 } else { 0 };
        counts && self.backs_in_a_row >= MAX_BACKS_IN_A_ROW && split == Split::Train
    }

    /// Replaces the action just counted when it goes back on the start page.
    pub(super) fn resolve(
        &self,
        goes_back: bool,
        url: &str,
        start_url: &str,
        action: Result<ResolvedAction, ActionError>,
    ) -> Result<ResolvedAction, ActionError> {
        match (goes_back && self.is_at(url), self.backs_in_a_row) {
            (true, 1) => Ok(ResolvedAction::Command(Command::VisitPage { url: start_url.to_owned() })),
            (true, _) => Ok(ResolvedAction::Wait { seconds: 0.0 }),
            (false, _) => action,
        }
    }
}

/// Removes the parts of a URL that do not select another page: the fragment and trailing slashes.
fn normalized(url: &str) -> String {
    url.split('#').next().unwrap_or_default().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "http://a.test/";

    const BACK: Result<ResolvedAction, ActionError> = Ok(ResolvedAction::Command(Command::Back));

    #[test]
    fn first_back_reloads_and_third_ends_episode() {
        let mut page = StartPage::new(START);
        assert!(!page.count_back(true, "http://a.test", Split::Train));
        let reload = Ok(ResolvedAction::Command(Command::VisitPage { url: START.into() }));
        assert_eq!(page.resolve(true, "http://a.test/#top", START, BACK), reload);
        assert!(!page.count_back(true, START, Split::Train));
        assert_eq!(page.resolve(true, START, START, BACK), Ok(ResolvedAction::Wait { seconds: 0.0 }));
        assert!(page.count_back(true, START, Split::Train), "the third ends a train episode");
    }

    #[test]
    fn test_episode_continues_after_third_back() {
        let mut page = StartPage::new(START);
        for _ in 0..5 {
            assert!(!page.count_back(true, START, Split::Test));
        }
        assert_eq!(page.resolve(true, START, START, BACK), Ok(ResolvedAction::Wait { seconds: 0.0 }));
    }

    #[test]
    fn other_action_resets_the_count() {
        let mut page = StartPage::new(START);
        page.count_back(true, START, Split::Train);
        page.count_back(true, START, Split::Train);
        page.count_back(false, START, Split::Train);
        assert!(!page.count_back(true, START, Split::Train));
        page.count_back(true, "http://a.test/else", Split::Train);
        assert_eq!(page.resolve(true, "http://a.test/else", START, BACK), BACK);
    }
}
