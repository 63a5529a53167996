//! Runs the instructions on a stack and a memo. When the pickle is a dict with a list called `trajectories` (or a
//! bare list), the items of that list are handed out one by one instead of being kept.

use std::collections::{HashMap, VecDeque};
use std::io::BufRead;

use super::decode::{Decoder, Op, Payload};
use super::globals::Global;
use super::open::{Item, Open, pairs};
use super::uses::Uses;
use super::value::Builder;
use super::{Limits, PickleError, Value};

pub struct Machine<R> {
    decoder: Decoder<R>,
    stack: Vec<Item>,
    /// Heights of the stack at the marks.
    marks: Vec<usize>,
    memo: HashMap<u32, Value>,
    /// Globals have slots of their own: they are not values.
    global_memo: HashMap<u32, Global>,
    memoized: u32,
    uses: Option<Uses>,
    builder: Builder,
    /// Height of the list whose items are handed out.
    streamed: Option<usize>,
    streams: bool,
    ready: VecDeque<Value>,
    /// What was handed out or copied so far: sharing lets a short input ask for much of either.
    spent: u64,
    root: Option<Value>,
}

pub(super) type Done = Result<(), PickleError>;

impl<R: BufRead> Machine<R> {
    pub fn new(input: R, length: u64, limits: Limits) -> Self {
        Self {
            decoder: Decoder::new(input, length),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            global_memo: HashMap::new(),
            memoized: 0,
            uses: None,
            builder: Builder { limits, expansion: limits.expansion_of(length) },
            streamed: None,
            streams: false,
            ready: VecDeque::new(),
            spent: 0,
            root: None,
        }
    }

    /// Keep only what will be fetched again, as counted before.
    pub fn with_uses(mut self, uses: Uses) -> Self {
        self.uses = Some(uses);
        self
    }

    /// Builds the whole value.
    pub fn run(mut self) -> Result<Value, PickleError> {
        while self.root.is_none() {
            self.step()?;
        }
        self.root.ok_or(PickleError::Truncated)
    }

    /// The next item of the trajectories, or `None` when the pickle has ended; then `root` has the rest of it.
    pub fn next_item(&mut self) -> Result<Option<Value>, PickleError> {
        self.streams = true;
        loop {
            if let Some(value) = self.ready.pop_front() {
                return Ok(Some(value));
            }
            if self.root.is_some() {
                return Ok(None);
            }
            self.step()?;
        }
    }

    /// What the pickle held beside the items that were handed out; after its end.
    pub const fn root(&self) -> Option<&Value> {
        self.root.as_ref()
    }

    fn step(&mut self) -> Done {
        match self.decoder.next(Payload::Read)? {
            Op::Nothing => Ok(()),
            Op::Mark => {
                self.marks.push(self.stack.len());
                if self.marks.len() > self.builder.limits.stack {
                    return Err(PickleError::Limit("too many marks on the stack"));
                }
                Ok(())
            }
            Op::Stop => self.stop(),
            Op::Pop => self.pop().map(|_| ()),
            Op::PopMark => self.above_mark().map(|_| ()),
            Op::None => self.push(Value::None),
            Op::Bool(value) => self.push(Value::Bool(value)),
            Op::Int(value) => self.push(Value::Int(value)),
            Op::Float(value) => self.push(Value::Float(value)),
            Op::Text(value) => self.push(Value::Text(value)),
            Op::Bytes(value) => self.push(Value::Bytes(value)),
            Op::Global { module, name } => self.push_item(Item::Global(Global::find(&module, &name)?)),
            Op::StackGlobal => self.stack_global(),
            Op::Reduce => self.reduce(),
            Op::NewObject => self.new_object(),
            Op::Build => {
                let state = self.pop_value()?;
                self.charge(state.as_entries().map_or(0, |entries| entries.len() as u64))?;
                self.open_top()?.build(state)
            }
            Op::Put(slot) => self.put(slot),
            Op::Memoize => {
                let slot = self.memoized;
                self.put(slot)
            }
            Op::Get(slot) => self.get(slot),
            container => self.container(&container),
        }
    }

    /// The instructions that begin, fill and complete containers.
    fn container(&mut self, op: &Op) -> Done {
        match *op {
            Op::EmptyList => self.empty_list(),
            Op::Append => {
                let item = self.pop_value()?;
                self.extend_list(vec![item])
            }
            Op::Appends => {
                let items = self.above_mark()?;
                self.extend_list(items)
            }
            Op::List => {
                let items = self.above_mark()?;
                self.push_open(Open::List(items))
            }
            Op::EmptyDict => self.push_open(Open::Dict(Vec::new())),
            Op::SetItem => {
                let value = self.pop_value()?;
                let key = self.pop_value()?;
                self.open_top()?.set(vec![key, value])
            }
            Op::SetItems => {
                let items = self.above_mark()?;
                self.open_top()?.set(items)
            }
            Op::Dict => {
                let items = self.above_mark()?;
                self.push_open(Open::Dict(pairs(items)?))
            }
            Op::EmptySet => self.push_open(Open::Set(Vec::new())),
            Op::AddItems => {
                let items = self.above_mark()?;
                self.open_top()?.add(items)
            }
            Op::FrozenSet => {
                let items = self.above_mark()?;
                self.push_open(Open::Set(items))
            }
            Op::TupleOf(count) => {
                let mut items = Vec::with_capacity(count);
                for _ in 0..count {
                    items.push(self.pop_value()?);
                }
                items.reverse();
                self.push_tuple(items)
            }
            Op::Tuple => {
                let items = self.above_mark()?;
                self.push_tuple(items)
            }
            _ => Err(PickleError::Malformed("an instruction out of place")),
        }
    }

    fn stop(&mut self) -> Done {
        let value = self.pop_value()?;
        if !self.stack.is_empty() || !self.marks.is_empty() {
            return Err(PickleError::Malformed("something is left on the stack at the end"));
        }
        self.root = Some(value);
        Ok(())
    }

    pub(super) fn push(&mut self, value: Value) -> Done {
        self.push_item(Item::Done(value))
    }

    pub(super) fn push_open(&mut self, open: Open) -> Done {
        self.push_item(Item::Open(open, Vec::new()))
    }

    fn push_tuple(&mut self, items: Vec<Value>) -> Done {
        let tuple = Value::Tuple(self.builder.sequence(items)?);
        self.push(tuple)
    }

    pub(super) fn push_item(&mut self, item: Item) -> Done {
        if self.stack.len() >= self.builder.limits.stack {
            return Err(PickleError::Limit("too many values on the stack"));
        }
        self.stack.push(item);
        Ok(())
    }

    fn empty_list(&mut self) -> Done {
        self.hand_out_complete()?;
        let height = self.stack.len();
        self.push_open(Open::List(Vec::new()))?;
        let is_trajectories = match self.stack.get(..height) {
            Some([]) => true,
            Some([Item::Open(Open::Dict(_), _), .., Item::Done(Value::Text(name))]) => {
                &**name == "trajectories" && height.is_multiple_of(2) && matches!(self.marks[..], [] | [1])
            }
            _ => false,
        };
        if self.streams && self.streamed.is_none() && is_trajectories {
            self.streamed = Some(height);
        }
        Ok(())
    }

    fn extend_list(&mut self, items: Vec<Value>) -> Done {
        if self.streamed.is_some_and(|height| height + 1 == self.stack.len()) {
            return items.into_iter().try_for_each(|item| self.hand_out(item));
        }
        self.open_top()?.append(items)
    }

    /// A trajectory that waits to be appended is complete when another list begins right above it: what it holds
    /// itself are dicts.
    fn hand_out_complete(&mut self) -> Done {
        let Some(height) = self.streamed else { return Ok(()) };
        if self.marks.last() != Some(&(height + 1)) || self.stack.len() != height + 2 {
            return Ok(());
        }
        match self.stack.pop_if(|item| matches!(item, Item::Open(Open::List(_), _))) {
            Some(item) => {
                let value = self.close(item)?;
                self.hand_out(value)
            }
            None => Ok(()),
        }
    }

    fn hand_out(&mut self, value: Value) -> Done {
        self.charge(value.size())?;
        self.ready.push_back(value);
        Ok(())
    }

    /// Counts work that is not in proportion to the input by itself, and refuses too much of it.
    pub(crate) fn charge(&mut self, size: u64) -> Done {
        self.spent = self.spent.saturating_add(size);
        if self.spent > self.builder.expansion {
            return Err(PickleError::Limit("shared values unfold to too much"));
        }
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Result<Item, PickleError> {
        if self.marks.last().is_some_and(|mark| *mark >= self.stack.len()) {
            return Err(PickleError::Malformed("a mark is where a value should be"));
        }
        let item = self.stack.pop().ok_or(PickleError::Malformed("the stack is empty"))?;
        // Closed even if nobody wants it: the memo may.
        match item {
            Item::Open(..) => self.close(item).map(Item::Done),
            other => Ok(other),
        }
    }

    pub(super) fn pop_value(&mut self) -> Result<Value, PickleError> {
        let item = self.pop()?;
        self.close(item)
    }

    fn close(&mut self, item: Item) -> Result<Value, PickleError> {
        match item {
            Item::Done(value) => Ok(value),
            Item::Global(_) => Err(PickleError::Malformed("a class is where a value should be")),
            Item::Open(open, slots) => {
                let value = open.close(self.builder)?;
                for slot in slots {
                    self.memo.insert(slot, value.clone());
                }
                Ok(value)
            }
        }
    }

    fn above_mark(&mut self) -> Result<Vec<Value>, PickleError> {
        let mark = self.marks.pop().ok_or(PickleError::Malformed("there is no mark"))?;
        if mark > self.stack.len() {
            return Err(PickleError::Malformed("the stack is lower than its mark"));
        }
        let items = self.stack.split_off(mark);
        items.into_iter().map(|item| self.close(item)).collect()
    }

    fn open_top(&mut self) -> Result<&mut Open, PickleError> {
        match self.stack.last_mut() {
            Some(Item::Open(open, _)) => Ok(open),
            // Python allows it; only structures that contain themselves need it.
            Some(_) => Err(PickleError::Refused("a change to a finished value".to_owned())),
            None => Err(PickleError::Malformed("the stack is empty")),
        }
    }

    fn put(&mut self, slot: u32) -> Done {
        self.memoized = self.memoized.saturating_add(1);
        if self.uses.as_ref().is_some_and(|uses| !uses.contains_key(&slot)) {
            return Ok(());
        }
        match self.stack.last_mut() {
            Some(Item::Done(value)) => {
                self.memo.insert(slot, value.clone());
            }
            Some(Item::Global(global)) => {
                self.global_memo.insert(slot, *global);
                self.memo.remove(&slot);
            }
            Some(Item::Open(_, slots)) => {
                slots.push(slot);
                self.memo.remove(&slot);
            }
            None => return Err(PickleError::Malformed("nothing is there to be remembered")),
        }
        Ok(())
    }

    fn get(&mut self, slot: u32) -> Done {
        let is_last = self.uses.as_mut().and_then(|uses| uses.get_mut(&slot)).is_some_and(|left| {
            *left = left.saturating_sub(1);
            *left == 0
        });
        let value = if is_last { self.memo.remove(&slot) } else { self.memo.get(&slot).cloned() };
        match (value, self.global_memo.get(&slot)) {
            (Some(value), _) => self.push(value),
            (None, Some(global)) => {
                let global = *global;
                self.push_item(Item::Global(global))
            }
            (None, None) => Err(PickleError::Malformed(
                "a value is fetched that is not remembered or that would contain itself",
            )),
        }
    }
}
