package sender

// Restoration is what a store's Restored has done. A database that was brought back to an
// earlier state, from a backup or by a failover to a standby that lacked the last commits,
// would give out again what receivers have seen. They drop an event with a version that
// they know, as old, and a reader of the feed looks behind its cursor only.
type Restoration struct {
	// Expanded is how many events got their deliveries that had waited for them. In
	// another cluster it could not be told any more what they were published before.
	Expanded int
	// Version is the highest that any object can have had: the next one of each is
	// above it. Versions that callers give are theirs to raise.
	Version int64
	// Position is the highest that any event can have had in the feed. Ids of deliveries
	// are made of positions, so those are new, too.
	Position int64
}
