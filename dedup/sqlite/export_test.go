package sqlite

const PruneQuery = pruneQuery
