//! Tidewater Goods, a shop: shelves, search, filters, product pages, a cart and a checkout.
//! The catalogue is fixed and each visitor's cart lives in their own cookie.

pub(crate) mod cart;
pub(crate) mod catalog;
pub(crate) mod checkout;
mod layout;
mod pages;
mod pictures;
pub(crate) mod search;

use axum::{
    Router,
    routing::{get, post},
};

use crate::stop::Stop;

pub(crate) fn routes() -> Router<Stop> {
    Router::new()
        .route("/shop/", get(pages::front))
        .route("/shop/search", get(pages::results))
        .route("/shop/p/{slug}", get(pages::product))
        .route("/shop/cart", get(checkout::show_cart))
        .route("/shop/cart/add", post(checkout::add))
        .route("/shop/cart/update", post(checkout::update))
        .route("/shop/checkout", get(checkout::form).post(checkout::order))
}
