package signing

// Svix returns the scheme of senders that use Svix: Standard Webhooks in headers of
// other names, Svix-Id, Svix-Timestamp and Svix-Signature. All that [StandardWebhooks]
// says holds. Some such senders use that one's names: a verifier takes both if it is
// given both schemes.
//
// Replay defence: [TimeWindow], 300 seconds.
//
// Source: https://docs.svix.com/receiving/verifying-payloads/how-manual. svix-webhooks
// verifies the signatures of this scheme, and the other way round.
func Svix() StandardWebhooks {
	return StandardWebhooks{
		IDHeader:        "Svix-Id",
		TimestampHeader: "Svix-Timestamp",
		SignatureHeader: "Svix-Signature",
		name:            "svix",
	}
}
