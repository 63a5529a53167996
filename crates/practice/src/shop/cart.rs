//! The cart of one visitor. Its cookie is all there is of it: the server keeps nothing, so no visitor can see
//! another's.

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

/// At most one line a product, never more than there is in stock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cart {
    pub(crate) lines: Vec<Line>,
}

impl Cart {
    /// `slug.quantity`, joined by `~`. What does not make sense is dropped: a visitor may send anything.
    pub(crate) fn read(text: &str) -> Self {
        let mut cart = Self::default();
        for part in text.split('~') {
            let line = part.split_once('.').and_then(|(slug, quantity)| Some((slug, quantity.parse().ok()?)));
            if let Some((slug, quantity)) = line {
                cart.add(slug, quantity);
            }
        }
        cart
    }

    pub(crate) fn write(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            let join = if text.is_empty() { "" } else { "~" };
            // Writing into a String cannot fail.
            let _ = write!(text, "{join}{}.{}", line.product.slug, line.quantity);
        }
        text
    }

    /// The header that gives the cart back to its visitor.
    pub(crate) fn cookie(&self) -> (HeaderName, String) {
        let age = if self.lines.is_empty() { "; Max-Age=0" } else { "" };
        (header::SET_COOKIE, format!("{COOKIE}={}; Path=/; SameSite=Lax{age}", self.write()))
    }

    /// False when there was not as much in stock as was asked for.
    pub(crate) fn add(&mut self, slug: &str, quantity: u32) -> bool {
        let already =
            self.lines.iter().find(|line| line.product.slug == slug).map_or(0, |line| line.quantity);
        self.set(slug, already.saturating_add(quantity))
    }

    /// As [`Cart::add`], to exactly that many; none removes the line.
    pub(crate) fn set(&mut self, slug: &str, wanted: u32) -> bool {
        let Some((_, product)) = catalog::find(slug) else { return false };
        let quantity = wanted.min(product.stock);
        match self.lines.iter().position(|line| line.product.slug == slug) {
            Some(place) if quantity == 0 => {
                self.lines.remove(place);
            }
            Some(place) => self.lines[place].quantity = quantity,
            None if quantity > 0 => self.lines.push(Line { product, quantity }),
            None => {}
        }
        quantity == wanted
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
        Ok(Self::read(cookie(&parts.headers, COOKIE).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cart_survives_its_cookie() {
        let mut cart = Cart::default();
        assert!(
            cart.add("brass-desk-lamp", 2) && cart.add("kitchen-radio", 1) && cart.add("brass-desk-lamp", 1)
        );
        assert_eq!(cart.write(), "brass-desk-lamp.3~kitchen-radio.1");
        assert_eq!(Cart::read(&cart.write()).write(), cart.write());
        assert_eq!(cart.count(), 4);
    }

    #[test]
    fn nonsense_in_a_cookie_is_dropped() {
        for nonsense in
            ["", "~", "lamp", "no-such-thing.3", "brass-desk-lamp.-1", "brass-desk-lamp.x", "family-tent.1"]
        {
            assert!(Cart::read(nonsense).lines.is_empty(), "{nonsense:?}");
        }
        assert_eq!(Cart::read("turntable-nine.4000000000~turntable-nine.4000000000").count(), 4);
    }

    #[test]
    fn there_is_never_more_than_in_stock() {
        let mut cart = Cart::default();
        assert!(!cart.add("turntable-nine", 5));
        assert_eq!(cart.count(), 4);
        assert!(cart.set("turntable-nine", 0) && cart.lines.is_empty());
    }

    #[test]
    fn shipping_is_free_from_a_hundred_on() {
        let with = |slug, quantity| {
            let mut cart = Cart::default();
            cart.add(slug, quantity);
            (cart.subtotal_cents(), cart.shipping_cents(), cart.total_cents())
        };
        assert_eq!(with("brass-desk-lamp", 1), (5900, 690, 6590));
        assert_eq!(with("brass-desk-lamp", 2), (11_800, 0, 11_800));
        assert_eq!(Cart::default().total_cents(), 0);
    }
}
