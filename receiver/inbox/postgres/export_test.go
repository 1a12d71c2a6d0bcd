package postgres

// The statements of a claim, for their plans.
const (
	ClaimLines = claimLines
	ClaimEvent = claimEvent
)
