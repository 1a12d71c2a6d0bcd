package sender

// Restoration is what a store's Restored has done. A database can be brought back to an
// earlier state, from a backup or by a failover to a standby that lacked the last commits.
// It would then give out versions and positions that receivers have seen. Receivers drop
// an event with a version that they know, and a reader of the feed looks behind its cursor
// only.
type Restoration struct {
	// Expanded is how many waiting events got their deliveries; 0 if a dispatcher has noticed
	// the move, since it expands them anyway. In another cluster, nobody
	// could tell any more which subscriptions are older than these events.
	Expanded int
	// Version is the highest version that any object can have had. The next version of each
	// object is above it. Versions that callers give are theirs to raise.
	Version int64
	// Position is the highest position that any event can have had in the feed. Ids of
	// deliveries are made of positions, so they are new, too.
	Position int64
	// LineageBefore and Lineage name what gave out versions before, and what does from now on:
	// on PostgreSQL the cluster's identifier, its timeline and the database's number, with "/"
	// between, and on Neon the branch's timeline behind them. "": not known. Both are the same
	// if the store has noticed no move.
	LineageBefore, Lineage string
}
