//! A producer that is killed after each of its stores: the stores are recorded, and a copy of the ring gets the
//! first so many of them, over bytes of former messages that look like frames.
