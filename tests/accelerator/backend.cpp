// The device `emulated`: an accelerator of PyTorch that is the processor, and whose tensors may not meet the
// processor's or another emulated device's. It has two of them. Built and loaded by backend.py.
#include <ATen/ATen.h>
#include <ATen/CPUFunctions.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

#include <atomic>
#include <map>
#include <mutex>
#include <sstream>
#include <string>

using at::Tensor;

namespace {

constexpr auto EMULATED = at::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex DEVICES = 2;
thread_local c10::DeviceIndex current = 0;
thread_local bool inside_an_operation = false;  // what the fallback copies is no transfer of the program's
std::atomic<bool> without_double{false};

struct Within {
  bool before = inside_an_operation;
  Within() { inside_an_operation = true; }
  ~Within() { inside_an_operation = before; }
};

c10::DeviceIndex index_of(std::optional<at::Device> device) {
  auto index = device && device->has_index() ? device->index() : current;
  TORCH_CHECK(index >= 0 && index < DEVICES, "there is no device emulated:", int(index), ", only ", int(DEVICES));
  return index;
}

// ---- what was done: transfers, operations, and an operation that is made to answer wrongly

struct Transfer {
  int from, to;  // -1 is the processor
  size_t bytes;
  std::string shape, type;
};

std::mutex counting;
std::vector<Transfer> transfers;
std::map<std::string, long> operations;
long values_read = 0;
std::string spoiled;
double spoiled_by = 0;

int place(const Tensor& tensor) { return tensor.is_cpu() ? -1 : int(tensor.device().index()); }

void count(const Tensor& from, const Tensor& to) {
  if (inside_an_operation || place(from) == place(to)) return;
  std::ostringstream shape;
  shape << from.sizes();
  std::lock_guard<std::mutex> lock(counting);
  transfers.push_back({place(from), place(to), from.nbytes(), shape.str(), std::string(c10::toString(from.scalar_type()))});
}

// ---- memory

struct Block {
  void* at;
  size_t bytes;
  c10::DeviceIndex device;
};

struct Memory final : c10::DeviceAllocator {
  std::mutex lock;
  c10::CachingAllocator::Stat held[DEVICES];
  size_t most[DEVICES] = {size_t(1) << 34, size_t(1) << 34};

  c10::DataPtr taken(size_t bytes, c10::DeviceIndex device) {
    at::Device on(EMULATED, device);
    if (bytes == 0) return {nullptr, nullptr, &let_go, on};
    std::lock_guard<std::mutex> guard(lock);
    auto free = most[device] - std::min(most[device], size_t(held[device].current));
    TORCH_CHECK_WITH(OutOfMemoryError, bytes <= free, "emulated out of memory. Tried to allocate ", bytes,
        " bytes. Device ", int(device), " has ", free, " bytes free of ", most[device], ".");
    held[device].increase(bytes);
    auto* block = new Block{c10::alloc_cpu(bytes), bytes, device};
    return {block->at, block, &let_go, on};
  }
  static void let_go(void* context);
  c10::DataPtr allocate(size_t bytes) override { return taken(bytes, current); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t = {0, 0}) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    std::lock_guard<std::mutex> guard(lock);
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[0] = stats.reserved_bytes[0] = stats.active_bytes[0] = held[index_of(at::Device(EMULATED, device))];
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override { held[device].reset_accumulated(); }
  void resetPeakStats(c10::DeviceIndex device) override { held[device].reset_peak(); }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    std::lock_guard<std::mutex> guard(lock);
    return {most[device] - std::min(most[device], size_t(held[device].current)), most[device]};
  }
};

Memory memory;
REGISTER_ALLOCATOR(EMULATED, &memory);

void Memory::let_go(void* context) {
  if (context == nullptr) return;
  auto* block = static_cast<Block*>(context);
  std::lock_guard<std::mutex> guard(memory.lock);
  memory.held[block->device].decrease(block->bytes);
  c10::free_cpu(block->at);
  delete block;
}

struct On {  // what is allocated meanwhile is on this device
  c10::DeviceIndex before = current;
  explicit On(c10::DeviceIndex device) { current = device; }
  ~On() { current = before; }
};

// ---- which device is the current one, by torch's two interfaces

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = EMULATED;
  Guard() = default;
  explicit Guard(c10::DeviceType) {}
  c10::DeviceType type() const override { return EMULATED; }
  c10::Device getDevice() const override { return {EMULATED, current}; }
  c10::Device exchangeDevice(c10::Device wanted) const override {
    auto before = getDevice();
    setDevice(wanted);
    return before;
  }
  void setDevice(c10::Device wanted) const override { current = index_of(wanted); }
  void uncheckedSetDevice(c10::Device wanted) const noexcept override { current = wanted.has_index() ? wanted.index() : current; }
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, c10::Device(EMULATED, index_of(device))); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream getNewStream(c10::Device device, int = 0) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return getStream(stream.device()); }
  c10::DeviceIndex deviceCount() const noexcept override { return DEVICES; }
  // nothing waits: every operation has ended when it returns
  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override { *event = this_event(); }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
  static void* this_event() { static char event; return &event; }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Hooks final : at::PrivateUse1HooksInterface {
  c10::DeviceIndex deviceCount() const override { return DEVICES; }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  void setCurrentDevice(c10::DeviceIndex wanted) const override { current = index_of(at::Device(EMULATED, wanted)); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex wanted) const override {
    auto before = current;
    setCurrentDevice(wanted);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex wanted) const override { return wanted < 0 ? current : exchangeDevice(wanted); }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  at::Device getDeviceFromPtr(void*) const override { return {EMULATED, current}; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return at::getCPUAllocator(); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { static auto made = at::detail::createCPUGenerator(); return made; }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return at::detail::createCPUGenerator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    auto larger = memory.taken(bytes, storage.device().index());
    if (bytes && storage.nbytes()) std::memcpy(larger.mutable_get(), storage.data(), std::min(bytes, storage.nbytes()));
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(larger));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
};
Hooks hooks;

// ---- tensors: made, seen in another shape, copied

void refuse_double(at::ScalarType type) {
  TORCH_CHECK_TYPE(!(without_double && (type == at::kDouble || type == at::kComplexDouble)),
      "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please use float32 instead.");
}

constexpr c10::DispatchKeySet KEYS(c10::DispatchKey::PrivateUse1);

Tensor made(c10::SymIntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  auto type = c10::dtype_or_default(dtype);
  refuse_double(type);
  On on(index_of(device));
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(sizes), &memory, KEYS, type, format);
}

Tensor made_strided(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  auto type = c10::dtype_or_default(dtype);
  refuse_double(type);
  On on(index_of(device));
  return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), &memory, KEYS, type);
}

Tensor as_strided(const Tensor& self, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, std::optional<c10::SymInt> offset) {
  auto from = offset ? std::optional<int64_t>(offset->expect_int()) : std::nullopt;
  return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), from);
}
Tensor view(const Tensor& self, c10::SymIntArrayRef sizes) { return at::native::view(self, C10_AS_INTARRAYREF_SLOW(sizes)); }
Tensor reshape_alias(const Tensor& self, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides));
}
Tensor unfold(const Tensor& self, int64_t dim, int64_t size, int64_t step) { return at::native::unfold(self, dim, size, step); }
Tensor view_as_real(const Tensor& self) { return at::native::view_as_real(self); }
Tensor view_as_complex(const Tensor& self) { return at::native::view_as_complex(self); }
const Tensor& resize(const Tensor& self, c10::SymIntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  On on(self.device().index());  // what becomes larger stays where it is
  return at::native::resize_(self, C10_AS_INTARRAYREF_SLOW(sizes), format);
}
Tensor& set_tensor(Tensor& self, const Tensor& source) { return at::native::set_tensor_(self, source); }
Tensor& set_storage(Tensor& self, at::Storage source) { return at::native::set_(self, source); }
Tensor& set_part(Tensor& self, at::Storage source, c10::SymInt offset, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides) {
  return at::cpu::set_(self, source, offset.expect_int(), C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides));
}

Tensor on_processor(const Tensor& tensor) {  // the same memory
  if (tensor.is_cpu()) return tensor;
  auto* start = static_cast<char*>(tensor.storage().mutable_data()) + tensor.storage_offset() * tensor.itemsize();
  Tensor same = at::from_blob(start, tensor.sizes(), tensor.strides(), at::TensorOptions().dtype(tensor.scalar_type()));
  if (tensor.is_conj()) same._set_conj(true);
  if (tensor.is_neg()) same._set_neg(true);
  return same;
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool) {
  if (!inside_an_operation && !from.is_cpu()) refuse_double(to.scalar_type());  // Apple's converts before it moves
  count(from, to);
  on_processor(to).copy_(on_processor(from));
  return to;
}
Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}
at::Scalar value_of(const Tensor& self) {
  if (!inside_an_operation) {
    std::lock_guard<std::mutex> lock(counting);
    values_read++;
  }
  return at::native::_local_scalar_dense_cpu(on_processor(self));
}

// ---- what the processor has under another name, or for fewer types, than every accelerator

Tensor convolved(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  for (const auto& each : {weight, bias && bias->defined() ? *bias : weight})
    TORCH_CHECK(each.device() == input.device(), "Expected all tensors to be on the same device, but found at least two devices, ",
        input.device(), " and ", each.device(), "! (aten::convolution)");
  Within within;
  auto of_processor = bias && bias->defined() ? std::optional<Tensor>(on_processor(*bias)) : std::nullopt;
  return at::convolution_symint(on_processor(input), on_processor(weight), of_processor, stride, padding, dilation, transposed,
      output_padding, groups).to(input.device());
}
Tensor counted(const Tensor& self, int64_t bins, const at::Scalar& least, const at::Scalar& most) {
  Within within;
  return at::histc(on_processor(self).to(at::kFloat), bins, least, most).to(self.options());
}

// ---- every other operation: its tensors must all be on one device, then the processor computes it

void refuse_two_devices(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const auto& schema = operation.schema();
  const auto& name = schema.operator_name().name;
  auto given = torch::jit::last(stack, schema.arguments().size());
  std::optional<at::Device> seen;
  auto look = [&](const Tensor& tensor, bool anywhere) {
    if (!tensor.defined() || (tensor.is_cpu() && (tensor.dim() == 0 || anywhere))) return;
    if (!seen) seen = tensor.device();
    TORCH_CHECK(*seen == tensor.device(), "Expected all tensors to be on the same device, but found at least two devices, ",
        *seen, " and ", tensor.device(), "! (", name, ")");
  };
  // as on a card: x[indices] takes indices from the processor, where x is on the device
  bool indexing = name == "aten::index" || name == "aten::index_put_" || name == "aten::index_put" ||
      name == "aten::_index_put_impl_" || name == "aten::_unsafe_index" || name == "aten::_unsafe_index_put";
  for (const auto& value : given) {
    if (value.isTensor()) look(value.toTensor(), false);
    else if (value.isTensorList()) for (const auto& each : value.toTensorVector()) look(each, indexing);
    else if (value.isList()) for (const c10::IValue& each : value.toListRef()) if (each.isTensor()) look(each.toTensor(), indexing);
  }
}

void computed(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const auto& name = operation.schema().operator_name().name;
  refuse_two_devices(operation, stack);
  bool wrong = false;
  {
    std::lock_guard<std::mutex> lock(counting);
    operations[name]++;
    wrong = name == spoiled;
  }
  Within within;
  at::native::cpu_fallback(operation, stack);
  if (!wrong) return;
  for (const auto& value : torch::jit::last(stack, operation.schema().returns().size()))
    if (value.isTensor() && at::isFloatingType(value.toTensor().scalar_type())) on_processor(value.toTensor()).mul_(1 + spoiled_by);
}

int64_t chosen_kernel(const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&, double, bool, std::optional<double>, bool) {
  return static_cast<int64_t>(sdp::SDPBackend::math);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", made);
  m.impl("empty_strided", made_strided);
  m.impl("as_strided", as_strided);
  m.impl("view", view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("unfold", unfold);
  m.impl("view_as_real", view_as_real);
  m.impl("view_as_complex", view_as_complex);
  m.impl("resize_", resize);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("set_.source_Storage", set_storage);
  m.impl("set_.source_Storage_storage_offset", set_part);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_local_scalar_dense", value_of);
  m.impl("convolution_overrideable", convolved);
  m.impl("histc", counted);
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&computed>()); }

// a copy looks at these bits itself
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

// what autocast runs in half precision and what in float32, as on every other accelerator
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define IN_HALF(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define IN_FLOAT32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_LOWER_PRECISION_FP(IN_HALF)
  AT_FORALL_FP32(IN_FLOAT32)
}

struct Registered {
  Registered() { at::RegisterPrivateUse1HooksInterface(&hooks); }
} registered;

}  // namespace

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &chosen_kernel);
}

// ---- for backend.py, through ctypes

extern "C" {
int emulated_devices() { return DEVICES; }
void emulated_without_double(int yes) { without_double = yes != 0; }
void emulated_memory(int device, size_t most) { std::lock_guard<std::mutex> guard(memory.lock); memory.most[device] = most; }
void emulated_spoil(const char* operation, double by) {
  std::lock_guard<std::mutex> lock(counting);
  spoiled = operation;
  spoiled_by = by;
}
void emulated_forget() {
  std::lock_guard<std::mutex> lock(counting);
  transfers.clear();
  operations.clear();
  values_read = 0;
}
const char* emulated_done() {  // JSON; valid until it is asked for again by the same thread
  thread_local std::string told;
  std::lock_guard<std::mutex> lock(counting);
  std::ostringstream out;
  out << "{\"values_read\": " << values_read << ", \"transfers\": [";
  for (size_t i = 0; i < transfers.size(); i++) {
    const auto& each = transfers[i];
    out << (i ? ", " : "") << "{\"source\": " << each.from << ", \"target\": " << each.to << ", \"bytes\": " << each.bytes
        << ", \"shape\": " << each.shape << ", \"dtype\": \"" << each.type << "\"}";
  }
  out << "], \"operations\": {";
  bool first = true;
  for (const auto& [name, times] : operations) {
    out << (first ? "" : ", ") << "\"" << name << "\": " << times;
    first = false;
  }
  out << "}}";
  return (told = out.str()).c_str();
}
}
