// What a must-fail test looks like; uses nothing of the library.
// EXPECT: an int has four bytes; no more
// EXPECT_WITHIN 3: sizeof(int) == 5
#ifdef LRCNN_FAIL
static_assert(sizeof(int) == 5, "an int has four bytes; no more");
#else
static_assert(sizeof(int) == 4, "an int has four bytes; no more");
#endif
