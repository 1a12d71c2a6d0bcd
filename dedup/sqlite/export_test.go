package sqlite

const PruneQuery = pruneQuery

const TakeReapply = takeReapply
