package sqlite

// The statements of a claim, for their plans.
const (
	ClaimLines = claimLinesQuery
	ClaimEvent = claimEventQuery
)
