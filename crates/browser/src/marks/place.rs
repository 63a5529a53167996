//! Where the labels go. Each has its usual place above its element; one that would lie on another element or
//! another label there looks for a freer place close by.

use super::canvas::Area;

/// Closer to the top edge than this a label goes below its box instead.
const TOP_MARGIN: i64 = 20;
/// An element this many times wider than its label can spare the room at its end.
const WIDE: i64 = 4;

/// An element to be labelled: its box, and the size of its label.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Labelled {
    pub(crate) area: Area,
    pub(crate) size: (i64, i64),
    /// The box is a row that we draw ourselves, with room for the label at its end.
    pub(crate) row: bool,
}

/// A place for every label, in the order of the elements, all wholly inside the picture.
pub(crate) fn place_labels(elements: &[Labelled], picture: (u32, u32)) -> Vec<Area> {
    let mut placed: Vec<Area> = Vec::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        let free = |place: &Area| {
            let others = elements.iter().enumerate().filter(|(other, _)| *other != index);
            let on_element = others
                .map(|(_, other)| other.area)
                .any(|other| !other.contains(element.area) && hidden(*place, other));
            !on_element && !placed.iter().any(|label| hidden(*place, *label))
        };
        let usual = usual_place(element, picture);
        let place = if element.row {
            at_the_end(element)
        } else if free(&usual) {
            usual
        } else {
            let others = other_places(element);
            others.into_iter().flatten().find(|place| inside(*place, picture) && free(place)).unwrap_or(usual)
        };
        placed.push(place);
    }
    placed
}

/// Above the top-right corner, or below the bottom-right one when there is no room above.
fn usual_place(element: &Labelled, picture: (u32, u32)) -> Area {
    let (width, height) = element.size;
    let (across, down) = (i64::from(picture.0), i64::from(picture.1));
    let Area { top, right, bottom, .. } = element.area;
    let right = right.clamp(width.min(across), across);
    let top = if top < TOP_MARGIN { bottom } else { top - height };
    let top = top.clamp(0, (down - height).max(0));
    Area { left: right - width, top, right, bottom: top + height }
}

/// Beside the element, then on its own far end if it can spare that.
fn other_places(element: &Labelled) -> [Option<Area>; 3] {
    let (width, height) = element.size;
    let Area { left, right, top, bottom } = element.area;
    let middle = top + (bottom - top - height) / 2;
    let beside = |left: i64| Area { left, top: middle, right: left + width, bottom: middle + height };
    let spare = right - left >= WIDE * width && bottom - top >= height;
    [Some(beside(left - width)), Some(beside(right)), spare.then(|| at_the_end(element))]
}

fn at_the_end(element: &Labelled) -> Area {
    let (width, height) = element.size;
    let Area { top, right, bottom, .. } = element.area;
    let top = top + (bottom - top - height) / 2;
    Area { left: right - width, top, right, bottom: top + height }
}

/// Whether so much of the label lies on `other` that one of them suffers.
fn hidden(label: Area, other: Area) -> bool {
    3 * label.overlap(other) > label.size()
}

fn inside(place: Area, picture: (u32, u32)) -> bool {
    let whole = Area { left: 0, top: 0, right: i64::from(picture.0), bottom: i64::from(picture.1) };
    whole.contains(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PICTURE: (u32, u32) = (400, 300);

    fn element(left: i64, top: i64, width: i64, height: i64) -> Labelled {
        let area = Area { left, top, right: left + width, bottom: top + height };
        Labelled { area, size: (20, 16), row: false }
    }

    fn corners(elements: &[Labelled]) -> Vec<(i64, i64)> {
        place_labels(elements, PICTURE).iter().map(|place| (place.left, place.top)).collect()
    }

    #[test]
    fn a_label_stands_above_the_right_corner_or_below_near_the_top() {
        assert_eq!(corners(&[element(100, 100, 80, 30)]), [(160, 84)]);
        assert_eq!(corners(&[element(100, 5, 80, 30)]), [(160, 35)]);
    }

    #[test]
    fn a_label_stays_in_the_picture() {
        assert_eq!(corners(&[element(-50, 100, 55, 30)]), [(0, 84)]);
        assert_eq!(corners(&[element(380, 100, 90, 30)]), [(380, 84)]);
        assert_eq!(corners(&[element(100, 2, 80, 297)]), [(160, 284)]);
        let wild = Area { left: i64::MIN / 4, top: i64::MIN / 4, right: i64::MAX / 4, bottom: i64::MAX / 4 };
        let place = place_labels(&[Labelled { area: wild, size: (20, 16), row: false }], PICTURE)[0];
        assert!(inside(place, PICTURE), "{place:?}");
    }

    #[test]
    fn a_label_that_would_hide_another_element_moves_beside_its_own() {
        let boxes = [element(100, 100, 18, 18), element(100, 120, 18, 18)];
        assert_eq!(corners(&boxes), [(98, 84), (80, 121)]);
    }

    #[test]
    fn a_wide_row_spares_its_end() {
        let list = [element(10, 100, 300, 24), element(10, 124, 300, 24)];
        let rows = [Labelled { row: true, ..list[0] }, Labelled { row: true, ..list[1] }];
        assert_eq!(corners(&rows), [(290, 104), (290, 128)]);
        let wall = element(310, 0, 90, 300);
        let edge = element(0, 100, 9, 60);
        assert_eq!(corners(&[list[0], list[1], wall, edge])[1], (290, 128));
    }

    #[test]
    fn what_an_element_lies_in_is_no_obstacle() {
        let card = element(0, 0, 400, 300);
        assert_eq!(corners(&[card, element(100, 100, 80, 30)])[1], (160, 84));
    }

    #[test]
    fn where_nothing_is_free_the_usual_place_is_taken() {
        let grid: Vec<Labelled> =
            (0..9).map(|at| element(100 + at % 3 * 30, 100 + at / 3 * 24, 30, 24)).collect();
        assert_eq!(corners(&grid)[4], (140, 108));
    }
}
