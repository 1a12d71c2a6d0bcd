package rules

// A store's Restored goes this far beyond what the database knows: further than anything
// that was lost can have come, if fewer than LostPositions events were lost, and fewer than
// LostVersions about one object.
const (
	LostPositions = 1_000_000_000
	LostVersions  = 1_000_000
)
