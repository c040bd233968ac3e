//! The ids of a channel, by token.

use std::sync::Weak;

use crate::token::Token;

mod table;

use table::Table;

/// For each token the id that its events belong to.
///
/// The first registration is in line, because many channels have one id: it needs no
/// table.
#[derive(Debug)]
pub(crate) struct Registrations<I> {
    first: Option<Registration<I>>,
    /// The others.
    table: Table<I>,
}

/// The id to which the events with one token belong.
#[derive(Debug)]
struct Registration<I> {
    token: Token,
    id: Weak<I>,
}

impl<I> Default for Registrations<I> {
    fn default() -> Self {
        Self {
            first: None,
            table: Table::default(),
        }
    }
}

impl<I> Registrations<I> {
    /// The id with this token.
    #[inline]
    pub(crate) fn get(&self, token: Token) -> Option<&Weak<I>> {
        match &self.first {
            Some(first) if first.token == token => Some(&first.id),
            _ => self.table.get(token),
        }
    }

    /// Registers an id, in place of one that has this token already.
    #[inline]
    pub(crate) fn insert(&mut self, token: Token, id: Weak<I>) {
        let is_first = match &self.first {
            Some(first) => first.token == token,
            // Otherwise the token may be in the table.
            None => self.table.is_empty(),
        };
        if is_first {
            self.first = Some(Registration { token, id });
        } else {
            self.table.insert(token, id);
        }
    }

    /// Removes the id with this token, if there is one.
    #[inline]
    pub(crate) fn remove(&mut self, token: Token) {
        match &self.first {
            Some(first) if first.token == token => self.first = None,
            _ => self.table.remove(token),
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none() && self.table.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::sync::Arc;

    proptest! {
        #[test]
        fn it_is_a_map(steps in proptest::collection::vec((0_u64..6, any::<bool>()), 0..100)) {
            let mut model = HashMap::new();
            let mut registrations = Registrations::default();
            for (uid, is_insert) in steps {
                let token = Token::from_kernel(uid);
                if is_insert {
                    let id = Arc::new(uid);
                    registrations.insert(token, Arc::downgrade(&id));
                    model.insert(uid, id);
                } else {
                    registrations.remove(token);
                    model.remove(&uid);
                }
                prop_assert_eq!(registrations.is_empty(), model.is_empty());
                for uid in 0..6 {
                    let found = registrations.get(Token::from_kernel(uid));
                    let found = found.and_then(Weak::upgrade);
                    prop_assert_eq!(found.as_ref(), model.get(&uid));
                }
            }
        }
    }

    #[test]
    fn one_id_needs_no_table() {
        let mut registrations = Registrations::default();
        for uid in 1..100 {
            registrations.insert(Token::from_kernel(uid), Weak::<u64>::new());
            registrations.remove(Token::from_kernel(uid));
            assert!(registrations.table.is_empty());
        }
    }

    #[test]
    fn a_slot_has_16_bytes() {
        assert_eq!(size_of::<Option<Registration<u8>>>(), 16);
    }
}
