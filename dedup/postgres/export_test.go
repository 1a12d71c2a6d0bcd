package postgres

// PruneQuery is the statement of Prune, for its plan.
const PruneQuery = prune
