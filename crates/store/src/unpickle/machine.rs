//! Runs the instructions of a pickle on a stack and a memo. If the pickle is a list, or a dict with a list under
//! `trajectories`, the items of that list can be returned one by one instead of being kept.

use std::collections::{HashMap, VecDeque};
use std::io::BufRead;

use super::decoder::{Decoder, Op, Payload};
use super::globals::Global;
use super::memo_uses::MemoUses;
use super::stack_item::{PartialValue, StackItem, into_pairs};
use super::value::Builder;
use super::{PickleError, UnpickleLimits, Value};

/// Interpreter for the accepted part of the pickle language.
pub struct Machine<R> {
    decoder: Decoder<R>,
    stack: Vec<StackItem>,
    /// Stack heights at the marks.
    marks: Vec<usize>,
    memo: HashMap<u32, Value>,
    /// Memo slots that refer to a global, which is not a value.
    global_memo: HashMap<u32, Global>,
    /// Number of memo slots assigned so far; `Memoize` uses the next one.
    memoized: u32,
    uses: Option<MemoUses>,
    builder: Builder,
    /// Stack height of the list whose items are returned one by one.
    streamed_list: Option<usize>,
    is_streaming: bool,
    ready: VecDeque<Value>,
    /// Size of the values returned and copied so far. Shared values let a short input cause much of both.
    spent: u64,
    root: Option<Value>,
}

pub(super) type StepResult = Result<(), PickleError>;

impl<R: BufRead> Machine<R> {
    pub fn new(input: R, length: u64, limits: UnpickleLimits) -> Self {
        Self {
            decoder: Decoder::new(input, length),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            global_memo: HashMap::new(),
            memoized: 0,
            uses: None,
            builder: Builder { limits, expansion: limits.max_expansion(length) },
            streamed_list: None,
            is_streaming: false,
            ready: VecDeque::new(),
            spent: 0,
            root: None,
        }
    }

    /// Keeps only memo values that will be read again, as counted by `count_memo_uses`.
    pub fn with_uses(mut self, uses: MemoUses) -> Self {
        self.uses = Some(uses);
        self
    }

    /// Builds the value of the pickle.
    pub fn run(mut self) -> Result<Value, PickleError> {
        while self.root.is_none() {
            self.step()?;
        }
        self.root.ok_or(PickleError::Truncated)
    }

    /// Returns the next trajectory, or `None` at the end of the pickle. After that, `root` has the rest of the value.
    pub fn next_item(&mut self) -> Result<Option<Value>, PickleError> {
        self.is_streaming = true;
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

    /// The value of the pickle without the items returned by `next_item`. `None` before the end of the pickle.
    pub const fn root(&self) -> Option<&Value> {
        self.root.as_ref()
    }

    fn step(&mut self) -> StepResult {
        match self.decoder.next(Payload::Read)? {
            Op::Ignored => Ok(()),
            Op::Mark => {
                self.marks.push(self.stack.len());
                if self.marks.len() > self.builder.limits.stack {
                    return Err(PickleError::Limit("too many marks on the stack"));
                }
                Ok(())
            }
            Op::Stop => self.stop(),
            Op::Pop => self.pop().map(|_| ()),
            Op::PopMark => self.pop_above_mark().map(|_| ()),
            Op::None => self.push(Value::None),
            Op::Bool(value) => self.push(Value::Bool(value)),
            Op::Int(value) => self.push(Value::Int(value)),
            Op::Float(value) => self.push(Value::Float(value)),
            Op::Text(value) => self.push(Value::Text(value)),
            Op::Bytes(value) => self.push(Value::Bytes(value)),
            Op::Global { module, name } => self.push_item(StackItem::Global(Global::find(&module, &name)?)),
            Op::StackGlobal => self.stack_global(),
            Op::Reduce => self.reduce(),
            Op::NewObject => self.new_object(),
            Op::Build => {
                let state = self.pop_value()?;
                self.charge(state.as_entries().map_or(0, |entries| entries.len() as u64))?;
                self.partial_top()?.build(state)
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

    /// Runs an instruction that creates or fills a container.
    fn container(&mut self, op: &Op) -> StepResult {
        match *op {
            Op::EmptyList => self.empty_list(),
            Op::Append => {
                let item = self.pop_value()?;
                self.extend_list(vec![item])
            }
            Op::Appends => {
                let items = self.pop_above_mark()?;
                self.extend_list(items)
            }
            Op::List => {
                let items = self.pop_above_mark()?;
                self.push_partial(PartialValue::List(items))
            }
            Op::EmptyDict => self.push_partial(PartialValue::Dict(Vec::new())),
            Op::SetItem => {
                let value = self.pop_value()?;
                let key = self.pop_value()?;
                self.partial_top()?.set_entries(vec![key, value])
            }
            Op::SetItems => {
                let items = self.pop_above_mark()?;
                self.partial_top()?.set_entries(items)
            }
            Op::Dict => {
                let items = self.pop_above_mark()?;
                self.push_partial(PartialValue::Dict(into_pairs(items)?))
            }
            Op::EmptySet => self.push_partial(PartialValue::Set(Vec::new())),
            Op::AddItems => {
                let items = self.pop_above_mark()?;
                self.partial_top()?.add_to_set(items)
            }
            Op::FrozenSet => {
                let items = self.pop_above_mark()?;
                self.push_partial(PartialValue::Set(items))
            }
            Op::TupleOf(count) => {
                let items = self.pop_values(count)?;
                self.push_tuple(items)
            }
            Op::Tuple => {
                let items = self.pop_above_mark()?;
                self.push_tuple(items)
            }
            _ => Err(PickleError::Malformed("unexpected instruction")),
        }
    }

    /// Pops `count` values and returns them in the order in which they were pushed.
    fn pop_values(&mut self, count: usize) -> Result<Vec<Value>, PickleError> {
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(self.pop_value()?);
        }
        items.reverse();
        Ok(items)
    }

    fn stop(&mut self) -> StepResult {
        let value = self.pop_value()?;
        if !self.stack.is_empty() || !self.marks.is_empty() {
            return Err(PickleError::Malformed("the stack is not empty at the end"));
        }
        self.root = Some(value);
        Ok(())
    }

    pub(super) fn push(&mut self, value: Value) -> StepResult {
        self.push_item(StackItem::Value(value))
    }

    pub(super) fn push_partial(&mut self, partial: PartialValue) -> StepResult {
        self.push_item(StackItem::Partial(partial, Vec::new()))
    }

    fn push_tuple(&mut self, items: Vec<Value>) -> StepResult {
        let tuple = Value::Tuple(self.builder.sequence(items)?);
        self.push(tuple)
    }

    pub(super) fn push_item(&mut self, item: StackItem) -> StepResult {
        if self.stack.len() >= self.builder.limits.stack {
            return Err(PickleError::Limit("too many values on the stack"));
        }
        self.stack.push(item);
        Ok(())
    }

    fn empty_list(&mut self) -> StepResult {
        self.emit_complete_item()?;
        let height = self.stack.len();
        self.push_partial(PartialValue::List(Vec::new()))?;
        let is_trajectories = match self.stack.get(..height) {
            Some([]) => true,
            Some([StackItem::Partial(PartialValue::Dict(_), _), .., StackItem::Value(Value::Text(name))]) => {
                &**name == "trajectories" && height.is_multiple_of(2) && matches!(self.marks[..], [] | [1])
            }
            _ => false,
        };
        if self.is_streaming && self.streamed_list.is_none() && is_trajectories {
            self.streamed_list = Some(height);
        }
        Ok(())
    }

    fn extend_list(&mut self, items: Vec<Value>) -> StepResult {
        if self.streamed_list.is_some_and(|height| height + 1 == self.stack.len()) {
            return items.into_iter().try_for_each(|item| self.emit(item));
        }
        self.partial_top()?.append(items)
    }

    /// Emits a trajectory that waits to be appended. It is complete when another list starts directly above it,
    /// because a trajectory itself contains only dicts.
    fn emit_complete_item(&mut self) -> StepResult {
        let Some(height) = self.streamed_list else { return Ok(()) };
        if self.marks.last() != Some(&(height + 1)) || self.stack.len() != height + 2 {
            return Ok(());
        }
        match self.stack.pop_if(|item| matches!(item, StackItem::Partial(PartialValue::List(_), _))) {
            Some(item) => {
                let value = self.freeze(item)?;
                self.emit(value)
            }
            None => Ok(()),
        }
    }

    fn emit(&mut self, value: Value) -> StepResult {
        self.charge(value.size())?;
        self.ready.push_back(value);
        Ok(())
    }

    /// Counts work that can exceed the length of the input, and fails if it is too much.
    pub(crate) fn charge(&mut self, size: u64) -> StepResult {
        self.spent = self.spent.saturating_add(size);
        if self.spent > self.builder.expansion {
            return Err(PickleError::Limit("shared values expand to too much"));
        }
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Result<StackItem, PickleError> {
        if self.marks.last().is_some_and(|mark| *mark >= self.stack.len()) {
            return Err(PickleError::Malformed("expected a value, found a mark"));
        }
        let item = self.stack.pop().ok_or(PickleError::Malformed("the stack is empty"))?;
        // Freeze it even if the value is dropped: a memo slot may refer to it.
        match item {
            StackItem::Partial(..) => self.freeze(item).map(StackItem::Value),
            other => Ok(other),
        }
    }

    pub(super) fn pop_value(&mut self) -> Result<Value, PickleError> {
        let item = self.pop()?;
        self.freeze(item)
    }

    fn freeze(&mut self, item: StackItem) -> Result<Value, PickleError> {
        match item {
            StackItem::Value(value) => Ok(value),
            StackItem::Global(_) => Err(PickleError::Malformed("expected a value, found a class")),
            StackItem::Partial(partial, slots) => {
                let value = partial.freeze(self.builder)?;
                for slot in slots {
                    self.memo.insert(slot, value.clone());
                }
                Ok(value)
            }
        }
    }

    fn pop_above_mark(&mut self) -> Result<Vec<Value>, PickleError> {
        let mark = self.marks.pop().ok_or(PickleError::Malformed("there is no mark"))?;
        if mark > self.stack.len() {
            return Err(PickleError::Malformed("the stack is shorter than at the mark"));
        }
        let items = self.stack.split_off(mark);
        items.into_iter().map(|item| self.freeze(item)).collect()
    }

    /// The container under construction on top of the stack.
    fn partial_top(&mut self) -> Result<&mut PartialValue, PickleError> {
        match self.stack.last_mut() {
            Some(StackItem::Partial(partial, _)) => Ok(partial),
            // Python allows this, but only values that contain themselves need it.
            Some(_) => Err(PickleError::Refused("a change to a value that is in use".to_owned())),
            None => Err(PickleError::Malformed("the stack is empty")),
        }
    }

    fn put(&mut self, slot: u32) -> StepResult {
        self.memoized = self.memoized.saturating_add(1);
        if self.uses.as_ref().is_some_and(|uses| !uses.contains_key(&slot)) {
            return Ok(());
        }
        match self.stack.last_mut() {
            Some(StackItem::Value(value)) => {
                self.memo.insert(slot, value.clone());
            }
            Some(StackItem::Global(global)) => {
                self.global_memo.insert(slot, *global);
                self.memo.remove(&slot);
            }
            Some(StackItem::Partial(_, slots)) => {
                slots.push(slot);
                self.memo.remove(&slot);
            }
            None => return Err(PickleError::Malformed("the stack is empty")),
        }
        Ok(())
    }

    fn get(&mut self, slot: u32) -> StepResult {
        let is_last = self.uses.as_mut().and_then(|uses| uses.get_mut(&slot)).is_some_and(|remaining| {
            *remaining = remaining.saturating_sub(1);
            *remaining == 0
        });
        let value = if is_last { self.memo.remove(&slot) } else { self.memo.get(&slot).cloned() };
        match (value, self.global_memo.get(&slot)) {
            (Some(value), _) => self.push(value),
            (None, Some(global)) => {
                let global = *global;
                self.push_item(StackItem::Global(global))
            }
            (None, None) => {
                Err(PickleError::Malformed("a memo slot is empty or its value would contain itself"))
            }
        }
    }
}
