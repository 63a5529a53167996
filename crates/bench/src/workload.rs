//! The workload: episodes of twelve steps on six practice pages, the same for every driver.

use practice::Sites;
use proto::{
    Command,
    command::{Fill, Point, Scroll},
};

/// The commands of one episode. `seed` rotates the order of the pages, so that workers do not run in lockstep.
pub(crate) fn episode(sites: &Sites, seed: usize) -> Vec<Command> {
    const PAGES: [&str; 6] =
        ["/shop/", "/wiki/", "/jobs/", "/course/inputs", "/course/long", "/course/buttons"];
    let visit = |number: usize| Command::VisitPage { url: sites.url(PAGES[(number + seed) % PAGES.len()]) };
    let point = |x: f64, y: f64| Point { x, y };
    let fill = || Fill { value: "lamp".to_owned(), press_enter: false, delete_existing: false };
    let page_down = || Command::PageDown(Scroll { amount: 600.0, full_page: false });
    vec![
        visit(0),
        Command::ClickCoords { point: point(300.0, 300.0) },
        Command::HoverCoords { point: point(500.0, 200.0) },
        visit(1),
        page_down(),
        Command::Back,
        visit(2),
        Command::FillCoords { point: point(400.0, 160.0), fill: fill() },
        visit(3),
        Command::ClickCoords { point: point(200.0, 400.0) },
        visit(4),
        page_down(),
    ]
}

/// Where a worker starts its first episode: at a different visit each, so that workers do not run in lockstep. Any other
/// step would act on an empty page.
pub(crate) fn first_step(commands: &[Command], worker: usize) -> usize {
    let is_visit = |step: &usize| matches!(commands[*step], Command::VisitPage { .. });
    let visits: Vec<usize> = (0..commands.len()).filter(is_visit).collect();
    visits[worker % visits.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn episodes_have_fixed_length_and_rotated_pages() {
        let sites = Sites::start(([127, 0, 0, 1], 0).into()).unwrap();
        assert_eq!(episode(&sites, 0).len(), 12);
        assert_ne!(episode(&sites, 0)[0], episode(&sites, 1)[0]);
    }

    #[tokio::test]
    async fn workers_start_at_different_visits() {
        let sites = Sites::start(([127, 0, 0, 1], 0).into()).unwrap();
        let commands = episode(&sites, 0);
        let starts: Vec<usize> = (0..6).map(|worker| first_step(&commands, worker)).collect();
        assert_eq!(starts, [0, 3, 6, 8, 10, 0]);
    }
}
