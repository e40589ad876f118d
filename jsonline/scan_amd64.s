//go:build !purego

#include "textflag.h"

// The characters that make an escape of two with a backslash: " \ / b f n r t.
// A character is one of them if what low holds for its low four bits and what
// high holds for its high four bits have a bit in common.
DATA low<>+0x00(SB)/8, $0x00040008000d0000
DATA low<>+0x08(SB)/8, $0x0104000200000000
DATA low<>+0x10(SB)/8, $0x00040008000d0000
DATA low<>+0x18(SB)/8, $0x0104000200000000
GLOBL low<>(SB), RODATA|NOPTR, $32

DATA high<>+0x00(SB)/8, $0x0804020000010000
DATA high<>+0x08(SB)/8, $0x0000000000000000
DATA high<>+0x10(SB)/8, $0x0804020000010000
DATA high<>+0x18(SB)/8, $0x0000000000000000
GLOBL high<>(SB), RODATA|NOPTR, $32

// func scanWide(b []byte, i int) (at int, escaped bool)
TEXT ·scanWide(SB), NOSPLIT, $0-41
	MOVQ b_base+0(FP), SI
	MOVQ b_len+8(FP), CX
	MOVQ i+24(FP), DI
	SUBQ $32, CX       // the last place where 32 bytes begin
	XORL R12, R12      // backslashes passed

	MOVL $'"', AX
	VMOVD AX, X0
	VPBROADCASTB X0, Y0
	MOVL $'\\', AX
	VMOVD AX, X1
	VPBROADCASTB X1, Y1
	MOVL $0x1f, AX
	VMOVD AX, X2
	VPBROADCASTB X2, Y2
	MOVL $0x0f, AX
	VMOVD AX, X5
	VPBROADCASTB X5, Y5
	VMOVDQU low<>(SB), Y3
	VMOVDQU high<>(SB), Y4
	VPXOR Y12, Y12, Y12
	MOVQ $0xaaaaaaaaaaaaaaaa, R11

next:
	CMPQ DI, CX
	JGT  done
	VMOVDQU (SI)(DI*1), Y6
	VPCMPEQB Y6, Y0, Y7
	VPCMPEQB Y6, Y1, Y8
	VPMINUB Y6, Y2, Y9
	VPCMPEQB Y6, Y9, Y9
	VPMOVMSKB Y8, R9   // backslashes
	TESTL R9, R9
	JNZ  slashes
	VPOR Y7, Y9, Y7    // quotes and control characters
	VPMOVMSKB Y7, R8
	TESTL R8, R8
	JNZ  found
	ADDQ $32, DI
	JMP  next

slashes:
	// A backslash that is not escaped begins an escape. In each run of them these
	// are every other one from the first: a subtraction carries through the run
	// and tells by the place of its end, even or odd, what is escaped.
	MOVQ R9, R13
	SHLQ $1, R13
	ORQ  R11, R13
	SUBQ R9, R13
	XORQ R11, R13
	MOVQ R13, AX
	XORQ R9, AX        // escaped
	ANDQ R9, R13       // backslashes that begin an escape

	VPAND Y6, Y5, Y10
	VPSHUFB Y10, Y3, Y10
	VPSRLW $4, Y6, Y11
	VPAND Y11, Y5, Y11
	VPSHUFB Y11, Y4, Y11
	VPAND Y10, Y11, Y10
	VPCMPEQB Y10, Y12, Y10
	VPMOVMSKB Y10, BX  // not to be escaped
	ANDL AX, BX
	SHRL $1, BX        // the backslashes before them

	VPMOVMSKB Y7, R8   // quotes
	VPMOVMSKB Y9, R10  // control characters
	NOTL AX
	ANDL AX, R8
	ORL  R10, R8
	ORL  BX, R8
	JNZ  foundSlashes
	ORL  R9, R12
	SHRL $31, R13      // an escape that goes on behind the 32 bytes begins there anew
	ADDQ $32, DI
	SUBQ R13, DI
	JMP  next

foundSlashes:
	LEAL -1(R8), AX
	XORL R8, AX        // up to the first that was found
	ANDL R9, AX
	ORL  AX, R12

found:
	BSFL R8, R8
	ADDQ R8, DI

done:
	VZEROUPPER
	MOVQ DI, at+32(FP)
	TESTL R12, R12
	SETNE escaped+40(FP)
	RET
