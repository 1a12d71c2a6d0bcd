package postgres

// These are the statements of a claim, so that a test can look at their plans.
const (
	ClaimAllLines   = claimAllLines
	ClaimScopeLines = claimScopeLines
	ClaimEvent      = claimEvent
)
