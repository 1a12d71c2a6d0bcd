package postgres

// PruneQuery is the statement of Prune, so that a test can look at its plan.
const PruneQuery = prune

const TakeReapply = takeReapply
