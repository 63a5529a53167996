//! The load: episodes of twelve steps over six practice pages, the same for every driver.

use practice::Sites;
use proto::{
    Command,
    command::{Fill, Point, Scroll},
};

pub(crate) const STEPS: usize = 12;

/// The commands of one episode. `seed` turns the order of the pages, so that workers are not in step.
pub(crate) fn episode(sites: &Sites, seed: usize) -> Vec<Command> {
    const PAGES: [&str; 6] =
        ["/shop/", "/wiki/", "/jobs/", "/course/inputs", "/course/long", "/course/buttons"];
    let visit = |number: usize| Command::VisitPage { url: sites.url(PAGES[(number + seed) % PAGES.len()]) };
    let at = |x: f64, y: f64| Point { x, y };
    let fill = || Fill { value: "lamp".to_owned(), press_enter: false, delete_existing: false };
    let down = || Command::PageDown(Scroll { amount: 600.0, full_page: false });
    vec![
        visit(0),
        Command::ClickCoords { point: at(300.0, 300.0) },
        Command::HoverCoords { point: at(500.0, 200.0) },
        visit(1),
        down(),
        Command::Back,
        visit(2),
        Command::FillCoords { point: at(400.0, 160.0), fill: fill() },
        visit(3),
        Command::ClickCoords { point: at(200.0, 400.0) },
        visit(4),
        down(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_episode_has_its_steps() {
        let sites = Sites::start(([127, 0, 0, 1], 0).into()).unwrap();
        assert_eq!(episode(&sites, 0).len(), STEPS);
        assert_ne!(episode(&sites, 0)[0], episode(&sites, 1)[0]);
    }
}
