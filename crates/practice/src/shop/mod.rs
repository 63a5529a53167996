//! Tidewater Goods, a shop: categories, search, filters, product pages, a cart and a checkout.
//! The catalogue is fixed, and each visitor's cart is stored in a cookie.

pub(crate) mod cart;
pub(crate) mod catalog;
pub(crate) mod checkout;
mod images;
mod layout;
mod pages;
pub(crate) mod search;

use axum::{
    Router,
    routing::{get, post},
};

use crate::shutdown::Shutdown;

pub(crate) fn routes() -> Router<Shutdown> {
    Router::new()
        .route("/shop/", get(pages::front))
        .route("/shop/search", get(pages::results))
        .route("/shop/p/{slug}", get(pages::product))
        .route("/shop/cart", get(checkout::show_cart))
        .route("/shop/cart/add", post(checkout::add))
        .route("/shop/cart/update", post(checkout::update))
        .route("/shop/checkout", get(checkout::form).post(checkout::order))
}
