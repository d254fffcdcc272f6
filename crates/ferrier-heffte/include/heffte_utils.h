// Types of elements, and small functions around MPI.
#ifndef HEFFTE_UTILS_H
#define HEFFTE_UTILS_H

// Programs get these with heffte.h.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <ostream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "heffte_config.h"

namespace heffte {

namespace mpi {

inline int comm_rank(MPI_Comm const comm) {
  int rank = -1;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

inline int comm_size(MPI_Comm const comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

inline int world_rank() { return comm_rank(MPI_COMM_WORLD); }
inline bool world_rank(int rank) { return world_rank() == rank; }

// Prints a vector on one rank, or on all of them (-1).
template <typename vector_like>
void dump(int rank, vector_like const &values, std::string const &message) {
  if (rank >= 0 && !world_rank(rank)) return;
  std::cout << message << "\n";
  for (auto const &value : values) std::cout << value << "  ";
  std::cout << std::endl;
}

// Some ranks of a communicator; the others get MPI_COMM_NULL. Collective.
inline MPI_Comm new_comm_from_group(std::vector<int> const &ranks, MPI_Comm const comm) {
  MPI_Group all, some;
  MPI_Comm result = MPI_COMM_NULL;
  MPI_Comm_group(comm, &all);
  MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
  MPI_Comm_create(comm, some, &result);
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  return result;
}

inline void comm_free(MPI_Comm const comm) {
  MPI_Comm copy = comm;
  if (MPI_Comm_free(&copy) != MPI_SUCCESS) throw std::runtime_error("MPI could not free a communicator");
}

// MPI's name of a type.
template <typename scalar_type>
MPI_Datatype type_from();
template <> inline MPI_Datatype type_from<int>() { return MPI_INT; }
template <> inline MPI_Datatype type_from<long long>() { return MPI_LONG_LONG; }
template <> inline MPI_Datatype type_from<float>() { return MPI_FLOAT; }
template <> inline MPI_Datatype type_from<double>() { return MPI_DOUBLE; }
template <> inline MPI_Datatype type_from<std::complex<float>>() { return MPI_C_COMPLEX; }
template <> inline MPI_Datatype type_from<std::complex<double>>() { return MPI_C_DOUBLE_COMPLEX; }

}  // namespace mpi

// Complex types; programs specialise these for their own, which must be two numbers.
template <typename scalar_type>
struct is_ccomplex : std::is_same<scalar_type, std::complex<float>> {};
template <typename scalar_type>
struct is_zcomplex : std::is_same<scalar_type, std::complex<double>> {};

// float, double or std::complex of them, by which this library knows a type.
template <typename scalar_type, typename = void>
struct define_standard_type {};
template <typename scalar_type>
struct define_standard_type<scalar_type, typename std::enable_if<std::is_same<scalar_type, float>::value ||
                                                                 std::is_same<scalar_type, double>::value>::type> {
  using type = scalar_type;
};
template <typename scalar_type>
struct define_standard_type<scalar_type, typename std::enable_if<is_ccomplex<scalar_type>::value>::type> {
  using type = std::complex<float>;
};
template <typename scalar_type>
struct define_standard_type<scalar_type, typename std::enable_if<is_zcomplex<scalar_type>::value>::type> {
  using type = std::complex<double>;
};

template <typename scalar_type>
typename define_standard_type<scalar_type>::type *convert_to_standard(scalar_type input[]) {
  return reinterpret_cast<typename define_standard_type<scalar_type>::type *>(input);
}
template <typename scalar_type>
typename define_standard_type<scalar_type>::type const *convert_to_standard(scalar_type const input[]) {
  return reinterpret_cast<typename define_standard_type<scalar_type>::type const *>(input);
}

// The largest workspace that some executors ask for.
template <typename some_class>
std::size_t get_max_work_size(std::array<some_class, 3> const &executors) {
  std::size_t largest = 0;
  for (auto const &executor : executors)
    if (executor) largest = std::max(largest, static_cast<std::size_t>(executor->workspace_size()));
  return largest;
}

}  // namespace heffte

#endif
