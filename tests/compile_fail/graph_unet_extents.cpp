// A U-Net on rows that cannot be halved four times: what is upsampled is a row short of its skip.
// EXPECT: lrcnn: the branches of a concat have different rows, columns or images; a concat puts channels of the same pixels one behind the other; change strides, padding or upsampling in one branch, or the input's extents so that pools divide them
// EXPECT_WITHIN 3: join_at<
// EXPECT_WITHIN 3: 1, 16, 5, 4
// EXPECT_WITHIN 3: 1, 16, 4, 4
#include <lrcnn/network/unet.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Fixed<UNet<2, 2>, Input{1, 3, 40, 32}>;
#else
using Net = Fixed<UNet<2, 2>, Input{1, 3, 48, 32}>;
#endif
static_assert(Net::layers.size() > 0);
