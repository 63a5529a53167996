//! The cart of one visitor. It is stored only in the visitor's cookie, so that no visitor can see another's cart.

use std::{convert::Infallible, fmt::Write};

use axum::{
    extract::FromRequestParts,
    http::{HeaderName, header, request::Parts},
};

use super::catalog::{self, Product};
use crate::html::cookie;

const COOKIE: &str = "shop_cart";
const FREE_SHIPPING_CENTS: u32 = 10_000;
const SHIPPING_CENTS: u32 = 690;
pub(crate) const EXPRESS_CENTS: u32 = 1250;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) product: &'static Product,
    pub(crate) quantity: u32,
}

impl Line {
    pub(crate) fn total_cents(&self) -> u32 {
        self.product.price_cents * self.quantity
    }
}

/// At most one line for each product, and never more than is in stock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cart {
    pub(crate) lines: Vec<Line>,
}

impl Cart {
    /// Parses `slug.quantity` items joined by `~`. Invalid items are dropped.
    pub(crate) fn parse(text: &str) -> Self {
        let mut cart = Self::default();
        for part in text.split('~') {
            let line = part.split_once('.').and_then(|(slug, quantity)| Some((slug, quantity.parse().ok()?)));
            if let Some((slug, quantity)) = line {
                cart.add(slug, quantity);
            }
        }
        cart
    }

    /// The inverse of [`Cart::parse`].
    pub(crate) fn serialize(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            let separator = if text.is_empty() { "" } else { "~" };
            // Writing into a String cannot fail.
            let _ = write!(text, "{separator}{}.{}", line.product.slug, line.quantity);
        }
        text
    }

    /// Returns the response header that stores the cart.
    pub(crate) fn cookie(&self) -> (HeaderName, String) {
        let age = if self.lines.is_empty() { "; Max-Age=0" } else { "" };
        (header::SET_COOKIE, format!("{COOKIE}={}; Path=/; SameSite=Lax{age}", self.serialize()))
    }

    /// Adds a quantity of a product. Returns false if not enough is in stock.
    pub(crate) fn add(&mut self, slug: &str, quantity: u32) -> bool {
        let already =
            self.lines.iter().find(|line| line.product.slug == slug).map_or(0, |line| line.quantity);
        self.set(slug, already.saturating_add(quantity))
    }

    /// Sets the quantity of a product; 0 removes the line. Returns false if not enough is in stock.
    pub(crate) fn set(&mut self, slug: &str, requested: u32) -> bool {
        let Some((_, product)) = catalog::find(slug) else { return false };
        let quantity = requested.min(product.stock);
        match self.lines.iter().position(|line| line.product.slug == slug) {
            Some(index) if quantity == 0 => {
                self.lines.remove(index);
            }
            Some(index) => self.lines[index].quantity = quantity,
            None if quantity > 0 => self.lines.push(Line { product, quantity }),
            None => {}
        }
        quantity == requested
    }

    pub(crate) fn count(&self) -> u32 {
        self.lines.iter().map(|line| line.quantity).sum()
    }

    pub(crate) fn subtotal_cents(&self) -> u32 {
        self.lines.iter().map(Line::total_cents).sum()
    }

    pub(crate) fn shipping_cents(&self) -> u32 {
        let free = self.lines.is_empty() || self.subtotal_cents() >= FREE_SHIPPING_CENTS;
        if free { 0 } else { SHIPPING_CENTS }
    }

    pub(crate) fn total_cents(&self) -> u32 {
        self.subtotal_cents() + self.shipping_cents()
    }
}

impl<S: Sync> FromRequestParts<S> for Cart {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::parse(cookie(&parts.headers, COOKIE).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cart_round_trips_through_its_cookie() {
        let mut cart = Cart::default();
        assert!(
            cart.add("brass-desk-lamp", 2) && cart.add("kitchen-radio", 1) && cart.add("brass-desk-lamp", 1)
        );
        assert_eq!(cart.serialize(), "brass-desk-lamp.3~kitchen-radio.1");
        assert_eq!(Cart::parse(&cart.serialize()).serialize(), cart.serialize());
        assert_eq!(cart.count(), 4);
    }

    #[test]
    fn invalid_cookie_items_are_dropped() {
        for invalid in
            ["", "~", "lamp", "no-such-thing.3", "brass-desk-lamp.-1", "brass-desk-lamp.x", "family-tent.1"]
        {
            assert!(Cart::parse(invalid).lines.is_empty(), "{invalid:?}");
        }
        assert_eq!(Cart::parse("turntable-nine.4000000000~turntable-nine.4000000000").count(), 4);
    }

    #[test]
    fn quantity_is_limited_to_the_stock() {
        let mut cart = Cart::default();
        assert!(!cart.add("turntable-nine", 5));
        assert_eq!(cart.count(), 4);
        assert!(cart.set("turntable-nine", 0) && cart.lines.is_empty());
    }

    #[test]
    fn shipping_is_free_from_100_dollars() {
        let totals = |slug, quantity| {
            let mut cart = Cart::default();
            cart.add(slug, quantity);
            (cart.subtotal_cents(), cart.shipping_cents(), cart.total_cents())
        };
        assert_eq!(totals("brass-desk-lamp", 1), (5900, 690, 6590));
        assert_eq!(totals("brass-desk-lamp", 2), (11_800, 0, 11_800));
        assert_eq!(Cart::default().total_cents(), 0);
    }
}
