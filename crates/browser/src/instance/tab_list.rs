//! The tabs of a session with `tabs: many`: listing, opening, switching and closing. Windows that pages open become tabs,
//! and the newest is the current one. With a single tab only the list works.

use std::sync::Arc;

use cdp::protocol as p;
use proto::page::TabInfo;
use serde_json::json;

use super::Instance;
use crate::{
    context::{MAX_TABS, close_target},
    error::BrowserError,
    page::Page,
};

/// A tab that is not the current one.
pub(super) struct Tab {
    id: u32,
    page: Page,
}

/// The tabs besides the current one, the most recently used last, and the numbers of tabs.
pub(super) struct Tabs {
    current: u32,
    last: u32,
    background: Vec<Tab>,
}

impl Default for Tabs {
    fn default() -> Self {
        Self { current: 1, last: 1, background: Vec::new() }
    }
}

impl Instance {
    /// Returns the tabs in the order in which they were opened.
    pub(super) async fn list_tabs(&self) -> Result<Vec<TabInfo>, BrowserError> {
        let targets = self.page_targets().await?;
        let tabs = self.tabs.background.iter().map(|tab| (tab.id, &tab.page));
        let mut listed: Vec<(u32, TabInfo)> = tabs
            .chain([(self.tabs.current, &self.page)])
            .map(|(id, page)| {
                let target = targets.iter().find(|target| target["targetId"] == page.target());
                let text = |field: &str| {
                    target.and_then(|target| target[field].as_str()).unwrap_or_default().to_owned()
                };
                let current = id == self.tabs.current;
                (id, TabInfo { id: id.to_string(), title: text("title"), url: text("url"), current })
            })
            .collect();
        listed.sort_by_key(|(id, _)| *id);
        Ok(listed.into_iter().map(|(_, tab)| tab).collect())
    }

    /// The tabs for an observation; `None` with a single tab.
    pub(super) async fn observe_tabs(&self) -> Result<Option<Vec<TabInfo>>, BrowserError> {
        if self.context.has_many_tabs() { self.list_tabs().await.map(Some) } else { Ok(None) }
    }

    pub(super) async fn open_tab(&mut self, url: Option<&str>) -> Result<(), BrowserError> {
        self.check_many_tabs("open_tab")?;
        if self.tabs.background.len() + 1 >= MAX_TABS {
            return Err(BrowserError::BadArgument(format!(
                "open_tab: the session has {MAX_TABS} tabs, the most it can have; close one first"
            )));
        }
        let page = Page::open(&self.connection, &self.context, Arc::clone(&self.options)).await?;
        self.add_tab(page);
        let Some(url) = url else { return Ok(()) };
        let visited = self.visit(url).await;
        if visited.is_err() {
            close_target(&self.connection, self.page.target());
            self.leave_closed_tab().await?;
        }
        visited
    }

    pub(super) async fn switch_tab(&mut self, id: &str) -> Result<(), BrowserError> {
        self.check_many_tabs("switch_tab")?;
        if let Some(index) = self.find_background("switch_tab", id)? {
            let Tab { id, page } = self.tabs.background.remove(index);
            self.show_tab(id, page);
        }
        // A page in the background is drawn only once it is in front.
        self.page.session().run(p::PAGE_BRING_TO_FRONT, &json!({})).await?;
        Ok(())
    }

    pub(super) async fn close_tab(&mut self, id: Option<&str>) -> Result<(), BrowserError> {
        self.check_many_tabs("close_tab")?;
        let index = match id {
            Some(id) => self.find_background("close_tab", id)?,
            None => None,
        };
        if let Some(index) = index {
            let tab = self.tabs.background.remove(index);
            close_target(&self.connection, tab.page.target());
            self.context.set_tab_count(self.tabs.background.len() + 1);
            return Ok(());
        }
        close_target(&self.connection, self.page.target());
        self.leave_closed_tab().await
    }

    /// Makes a new page the current tab.
    pub(super) fn add_tab(&mut self, page: Page) {
        self.tabs.last += 1;
        self.show_tab(self.tabs.last, page);
    }

    fn show_tab(&mut self, id: u32, page: Page) {
        let previous = std::mem::replace(&mut self.tabs.current, id);
        let page = self.replace_page(page);
        self.tabs.background.push(Tab { id: previous, page });
        self.context.set_tab_count(self.tabs.background.len() + 1);
    }

    /// Shows the tab that was used before, in place of one that is closed. Without another, opens an empty one.
    pub(super) async fn leave_closed_tab(&mut self) -> Result<(), BrowserError> {
        self.forget_closed_tabs();
        let (id, page) = if let Some(Tab { id, page }) = self.tabs.background.pop() {
            (id, page)
        } else {
            self.tabs.last += 1;
            let options = Arc::clone(&self.options);
            (self.tabs.last, Page::open(&self.connection, &self.context, options).await?)
        };
        self.tabs.current = id;
        self.replace_page(page);
        self.context.set_tab_count(self.tabs.background.len() + 1);
        self.page.session().run(p::PAGE_BRING_TO_FRONT, &json!({})).await?;
        Ok(())
    }

    /// Drops the tabs in the background that have closed themselves or crashed.
    pub(super) fn forget_closed_tabs(&mut self) {
        self.tabs.background.retain(|tab| tab.page.tracker().state().ended.is_none());
        self.context.set_tab_count(self.tabs.background.len() + 1);
    }

    fn check_many_tabs(&self, command: &str) -> Result<(), BrowserError> {
        if self.context.has_many_tabs() {
            return Ok(());
        }
        Err(BrowserError::BadArgument(format!(
            "{command}: this session has a single tab; acquire the lease with the session option {{\"tabs\": \"many\"}}"
        )))
    }

    /// Returns the position of a tab in the background; `None` for the current one.
    fn find_background(&mut self, command: &str, id: &str) -> Result<Option<usize>, BrowserError> {
        self.forget_closed_tabs();
        if id == self.tabs.current.to_string() {
            return Ok(None);
        }
        let index = self.tabs.background.iter().position(|tab| tab.id.to_string() == id);
        index.map(Some).ok_or_else(|| {
            let mut ids: Vec<u32> = self.tabs.background.iter().map(|tab| tab.id).collect();
            ids.push(self.tabs.current);
            ids.sort_unstable();
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            BrowserError::BadArgument(format!(
                "{command}: there is no tab {id:?}; the tabs are {}",
                ids.join(", ")
            ))
        })
    }
}
