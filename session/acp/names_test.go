package acp

import (
	"testing"

	sdk "github.com/coder/acp-go-sdk"
)

// The names are those of the protocol's Go SDK.
func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		methodInitialize: sdk.AgentMethodInitialize, methodAuthenticate: sdk.AgentMethodAuthenticate,
		methodNew: sdk.AgentMethodSessionNew, methodLoad: sdk.AgentMethodSessionLoad,
		methodSetMode: sdk.AgentMethodSessionSetMode, methodSetModel: sdk.AgentMethodSessionSetModel,
		methodPrompt: sdk.AgentMethodSessionPrompt, methodCancel: sdk.AgentMethodSessionCancel,
		methodUpdate: sdk.ClientMethodSessionUpdate, methodPermission: sdk.ClientMethodSessionRequestPermission,
		allowOnce: string(sdk.PermissionOptionKindAllowOnce), allowAlways: string(sdk.PermissionOptionKindAllowAlways),
		rejectOnce: string(sdk.PermissionOptionKindRejectOnce),
	} {
		if name != want {
			t.Errorf("%q is %q in the SDK", name, want)
		}
	}
	if protocolVersion != sdk.ProtocolVersionNumber {
		t.Errorf("the SDK speaks version %d", sdk.ProtocolVersionNumber)
	}
}
